"""The commit that is released: its files, version and time.

Artefacts are built of `git archive`, so that nothing gets into them which is not committed, and
have the commit's time, so that they are the same whenever and wherever they are built.
"""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from hack.fleetlib import running
from hack.fleetlib.errors import FleetError

REPOSITORY = Path(__file__).resolve().parents[2]
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReleaseSource:
    """A commit, with its files in `folder`."""

    version: str
    commit: str
    epoch: int
    """When it was committed, in seconds since 1970."""
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What makes builders give files the commit's time."""
        return {"SOURCE_DATE_EPOCH": str(self.epoch)}


def export(folder: Path, repository: Path = REPOSITORY) -> ReleaseSource:
    """Write the files of the current commit to an empty folder; FleetError without Git's data."""
    git: list[str | Path] = ["git", "-C", repository]
    commit, epoch = running.output([*git, "log", "-1", "--format=%H %ct"]).split()
    archive = folder / "source.tar"
    running.output([*git, "archive", "--format=tar", f"--output={archive}", commit])
    files = folder / "source"
    with tarfile.open(archive) as opened:
        opened.extractall(files, filter="data")
    return ReleaseSource(version_of(files), commit, int(epoch), files)


def version_of(folder: Path) -> str:
    """Return the version, which is kept in one place."""
    found = _VERSION.search((folder / "vnode" / "__init__.py").read_text())
    if found is None:
        raise FleetError("vnode/__init__.py has no line __version__ = ...")
    return found[1]


def uncommitted(repository: Path = REPOSITORY) -> list[str]:
    """Return the files whose changes will not be in the release."""
    lines = running.output(["git", "-C", repository, "status", "--porcelain"]).splitlines()
    return [line[3:] for line in lines]
