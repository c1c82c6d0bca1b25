"""Finds or gets programs: `$KUBE_BIN_DIR`, the cache, the official download, the Go build.

The cache holds a folder for each family and version. A program appears there by an atomic rename of
a finished file, so whatever is in the cache is whole; a lock for each family keeps two callers from
building the same.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import cachefolder
from hack.fleetlib.errors import FleetError
from hack.fleetlib.progress import say
from hack.fleetlib.tools import catalogue, downloads, gobuild

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hack.fleetlib.tools.catalogue import Tool

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def system_and_machine() -> tuple[str, str]:
    """Return Go's names for this machine, e.g. `("linux", "amd64")`."""
    machine = _ARCHITECTURES.get(platform.machine().lower())
    if machine is None:
        raise FleetError(f"no programs for a machine of type {platform.machine()}")
    return sys.platform, machine


def locate(names: Iterable[str] = catalogue.USUAL) -> dict[str, Path]:
    """Return the path of each program, got first if it is missing.

    Raise FleetError if one cannot be had.
    """
    tools = [_tool(name) for name in names]
    found = {tool.name: path for tool in tools if (path := present(tool)) is not None}
    missing: dict[str, list[Tool]] = {}
    for tool in tools:
        if tool.name not in found:
            missing.setdefault(tool.family, []).append(tool)
    for family, wanted in missing.items():
        _get(family, wanted)
        found |= {tool.name: cached(tool) for tool in wanted}
    return {tool.name: found[tool.name] for tool in tools}


def _tool(name: str) -> Tool:
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
    """Return the program if it exists in `$KUBE_BIN_DIR` or in the cache."""
    candidates = [cached(tool)]
    if folder := environ.get("KUBE_BIN_DIR"):
        candidates.insert(0, Path(folder) / tool.name)
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def _get(family: str, wanted: list[Tool]) -> None:
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
    system, machine = system_and_machine()
    for position, tool in enumerate(tools):
        if tool.release is None:
            _build([tool], fresh)
            continue
        try:
            downloads.fetch(tool, fresh, system, machine)
        except FleetError as error:
            # The rest would fail in the same way, and each attempt costs a time-out.
            say(f"no download of {tool.name} ({error}); building it")
            _build(tools[position:], fresh)
            return
        _keep(tool, fresh)


def _build(tools: list[Tool], fresh: Path) -> None:
    for tool in tools:
        gobuild.build([tool], fresh)
        _keep(tool, fresh)


def _keep(tool: Tool, fresh: Path) -> None:
    shutil.move(fresh / tool.name, cached(tool))
