"""The folder that outlives a clone: programs and virtual environments."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `$VNODE_CACHE`, else the folder `vnode` in `$XDG_CACHE_HOME` or `~/.cache`."""
    if chosen := environ.get("VNODE_CACHE"):
        return Path(chosen)
    if parent := environ.get("XDG_CACHE_HOME"):
        return Path(parent) / "vnode"
    return Path(environ.get("HOME") or Path.home()) / ".cache" / "vnode"


@contextmanager
def locked(name: str, waiting: Callable[[], None], root: Path | None = None) -> Iterator[None]:
    """Hold the lock `name` among all processes of this user; `waiting` is called when it is taken.

    The kernel drops the lock with the process, so a killed builder never blocks the next one.
    """
    folder = (root or path()) / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_once(folder: Path, make: Callable[[], None], waiting: Callable[[], None]) -> None:
    """Have `make` fill a folder, unless this or another process has done so."""
    if is_finished(folder):
        return
    with locked(folder.name, waiting):
        if not is_finished(folder):
            shutil.rmtree(folder, ignore_errors=True)
            make()
            (folder / "finished").touch()


def is_finished(folder: Path) -> bool:
    """Tell whether a folder is whole."""
    return (folder / "finished").exists()
