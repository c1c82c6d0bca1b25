"""The environment of a release's tools, in the cache folder: made when it is first needed.

Standard library only, because it runs before anything is installed. Each library is taken by its
hash, and as a wheel, so that nothing is built or chosen by an index.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from hack.fleetlib import cachefolder, progress, running

PINNED = Path(__file__).resolve().parents[1] / "release-constraints.txt"
_INSIDE = "VNODE_RELEASE_TOOLS"


def enter(script: str) -> None:
    """Go on in the interpreter that has the tools; FleetError if they cannot be installed."""
    if os.environ.get(_INSIDE):
        return
    python = str(ensure())
    os.execve(python, [python, script, *sys.argv[1:]], {**os.environ, _INSIDE: "1"})  # noqa: S606


def ensure() -> Path:
    """Return the interpreter that has the tools; install them first if need be."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(PINNED.read_bytes()).hexdigest()[:12]
    name = f"release-python{version}-{digest}"
    folder = cachefolder.path() / "venv" / name
    python, finished = folder / "bin" / "python", folder / "finished"
    if finished.exists():
        return python

    with cachefolder.locked(name, lambda: progress.say("waiting for the tools of releases ...")):
        if not finished.exists():
            with progress.reported("installing the tools of releases"):
                shutil.rmtree(folder, ignore_errors=True)
                running.output([sys.executable, "-m", "venv", folder])
                install(python, "--requirement", PINNED)
            finished.touch()
    return python


def install(python: Path, *words: str | Path) -> None:
    """Install pinned libraries into the environment of `python`: wheels only, each by its hash."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install"]
    running.output([*pip, *options, "--require-hashes", *words])


if __name__ == "__main__":
    print(ensure())
