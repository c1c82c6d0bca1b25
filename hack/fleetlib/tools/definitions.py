"""Describes a program: which Go module it is built from, and where it is published."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module that programs are built from.

    `staging` is the version that stands in for modules which `path`'s own go.mod replaces by a
    folder beside it: such replacements count only in the main module, so ours has to repeat them.
    `in_place` has it built in its own folder, as the main module: then its own checksums count,
    among them those that no public database gives.
    """

    path: str
    version: str
    staging: str | None = None
    stamps: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """An official download: `checksum` is where its SHA-256 is, `member` a path in an archive.

    The checksum is a file of sums, or GitHub's description of a release, which has them as digests.
    `{version}`, `{os}` and `{arch}` are filled in.
    """

    url: str
    checksum: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    family: str
    version: str
    module: Module
    package: str
    release: Release | None  # none: it is always built
    on_request: bool = False  # got only by who asks for it by name
    debian: str = ""  # the package that has one that will do, which takes less time than a build
    tests: bool = False  # made of the package's tests
