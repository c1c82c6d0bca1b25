"""Finds or gets programs: `$KUBE_BIN_DIR`, the cache, the download, Debian's package, the Go build.

Downloads go side by side, builds two at a time. The cache holds a folder for each family and
version. A program appears there by an atomic rename of a finished file, so whatever is in the cache
is whole; a lock for each family keeps two callers from building the same, or two versions at once.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import cachefolder, debian, side_by_side
from hack.fleetlib.errors import FleetError
from hack.fleetlib.progress import say
from hack.fleetlib.tools import catalogue, downloads, gobuild, kubernetes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hack.fleetlib.tools.definitions import Tool

_BUILDING = threading.BoundedSemaphore(2)
"""Held while a program is built: two keep all cores busy also while one downloads or links."""
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def system_and_machine() -> tuple[str, str]:
    """Return Go's names for this machine, e.g. `("linux", "amd64")`."""
    machine = _ARCHITECTURES.get(platform.machine().lower())
    if machine is None:
        raise FleetError(f"no programs for a machine of type {platform.machine()}")
    return sys.platform, machine


def locate(
    names: Iterable[str] = catalogue.USUAL, version: str = kubernetes.DEFAULT
) -> dict[str, Path]:
    """Return the path of each program, got first if it is missing; those of a cluster as `version`.

    Raise FleetError if one cannot be had.
    """
    tools = [_tool(name, version) for name in names]
    found = {tool.name: path for tool in tools if (path := present(tool)) is not None}
    missing: dict[Path, list[Tool]] = {}
    for tool in tools:
        if tool.name not in found:
            missing.setdefault(cached(tool).parent, []).append(tool)
    side_by_side.each(list(missing.values()), _get)
    for wanted in missing.values():
        found |= {tool.name: cached(tool) for tool in wanted}
    return {tool.name: found[tool.name] for tool in tools}


def locate_each(words: Iterable[str]) -> list[Path]:
    """Return the paths of programs, each of which may say its version: `kubelet@1.34`."""
    asked: list[tuple[str, str]] = []
    for word in words:
        name, at, version = word.partition("@")
        wanted = kubernetes.resolve(version) if at else kubernetes.DEFAULT
        if at and name not in kubernetes.OF_A_CLUSTER:
            known = ", ".join(kubernetes.OF_A_CLUSTER)
            raise FleetError(f"{name} has one version only; others are to be had of {known}")
        asked.append((name, wanted))
    found = {
        version: locate([name for name, its in asked if its == version], version)
        for version in dict.fromkeys(version for _name, version in asked)
    }
    return [found[version][name] for name, version in asked]


def _tool(name: str, version: str) -> Tool:
    if version != kubernetes.DEFAULT and name in kubernetes.OF_A_CLUSTER:
        return next(tool for tool in kubernetes.programs(version) if tool.name == name)
    try:
        return catalogue.TOOLS[name]
    except KeyError:
        known = ", ".join(catalogue.TOOLS)
        raise FleetError(f"unknown program {name!r}; known are {known}") from None


def cached(tool: Tool) -> Path:
    """Return the path of `tool` in the cache, whether it exists or not."""
    system, machine = system_and_machine()
    folder = f"{tool.family}-{tool.version}-{system}-{machine}"
    return cachefolder.path() / "bin" / folder / tool.name


def present(tool: Tool, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the program if it exists in `$KUBE_BIN_DIR` or in the cache.

    Programs in `$KUBE_BIN_DIR` are taken for those of the usual version, not of another.
    """
    candidates = [cached(tool)]
    other = tool.family == "kubernetes" and tool.version != kubernetes.DEFAULT
    if (folder := environ.get("KUBE_BIN_DIR")) and not other:
        candidates.insert(0, Path(folder) / tool.name)
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def _get(wanted: list[Tool]) -> None:
    """Get programs of one family and version, which share a folder of the cache."""
    family = wanted[0].family

    def waiting() -> None:
        say(f"another process is getting {family}; waiting for it ...")

    with cachefolder.locked(family, waiting):
        tools = [tool for tool in wanted if present(tool) is None]
        if not tools:
            return
        folder = cached(tools[0]).parent
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as fresh:
            _download_or_build(tools, Path(fresh))


def _download_or_build(tools: list[Tool], fresh: Path) -> None:
    """Download programs, all at once, so that one time-out is enough; build what cannot be had."""
    system, machine = system_and_machine()

    def download(tool: Tool) -> None:
        try:
            downloads.fetch(tool, fresh, system, machine)
        except FleetError as error:
            say(f"no download of {tool.name} ({error})")
        else:
            _keep(tool, fresh)

    side_by_side.each([tool for tool in tools if tool.release is not None], download)
    for tool in tools:
        if not cached(tool).exists():
            if not _unpack(tool, fresh):
                with _BUILDING:
                    gobuild.build([tool], fresh)
            _keep(tool, fresh)


def _unpack(tool: Tool, fresh: Path) -> bool:
    """Get a program from Debian's package, if there is one that will do; return whether it is."""
    if not tool.debian:
        return False
    try:
        debian.unpack(tool.debian, tool.name, fresh)
    except FleetError as error:
        say(f"no {tool.name} of Debian's package {tool.debian} ({error})")
        return False
    return True


def _keep(tool: Tool, fresh: Path) -> None:
    shutil.move(fresh / tool.name, cached(tool))
