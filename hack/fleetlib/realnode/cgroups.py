"""Gives each real node its own part of the cgroup hierarchies, lest nodes should share `/kubepods`.

Two kubelets in one would each delete the other's pods. Version 1 (a mount for each controller) and
version 2 (one mount for all) are told apart by what is mounted.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from hack.fleetlib.errors import FleetError

ROOT = Path("/sys/fs/cgroup")
_GONE_SECONDS = 20.0
_CPUSET = ("cpuset.cpus", "cpuset.mems")


def hierarchies(root: Path = ROOT) -> list[Path]:
    """Return the mounts in which a cgroup must be made: the only one, or each controller's."""
    if (root / "cgroup.controllers").exists():
        return [root]
    return sorted(folder for folder in root.iterdir() if (folder / "cgroup.procs").exists())


def create(name: str, root: Path = ROOT) -> None:
    """Make the cgroups of a node, ready for a kubelet to make more below them."""
    for parent in hierarchies(root):
        folder = parent / name
        folder.mkdir(exist_ok=True)
        if (parent / "cgroup.subtree_control").exists():
            _delegate(parent)
            _delegate(folder)
        elif (parent / _CPUSET[0]).exists():
            # New cpusets are empty in version 1, and nothing can run in an empty one.
            for file in _CPUSET:
                (folder / file).write_text((parent / file).read_text())
            (folder / "cgroup.clone_children").write_text("1")


def _delegate(folder: Path) -> None:
    """Let the children of `folder` have its controllers, as version 2 requires."""
    for controller in (folder / "cgroup.controllers").read_text().split():
        with suppress(OSError):  # some cannot be handed down, e.g. while the root has processes
            (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def remove(name: str, root: Path = ROOT) -> None:
    """Delete the node's cgroups, whose processes may still be terminating.

    FleetError if they are not empty after a while: the kernel tells nobody when they are.
    """
    deadline = time.monotonic() + _GONE_SECONDS
    left = [parent / name for parent in hierarchies(root)]
    while left := [folder for folder in left if not _removed(folder)]:
        if time.monotonic() > deadline:
            raise FleetError(f"still in use: {', '.join(map(str, left))}")
        time.sleep(0.05)


def _removed(top: Path) -> bool:
    try:
        folders = sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True)
        for folder in [*folders, top]:
            folder.rmdir()
    except FileNotFoundError:  # some went by themselves
        return not top.exists()
    except OSError:
        return False

    return True
