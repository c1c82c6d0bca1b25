"""Mounts the machine's files for a real node, with a state and settings of its own.

Runs in a mount namespace of the node's own, so nothing here reaches the machine, and everything is
undone when the last process in it ends.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

# What kubelet would otherwise set for the whole machine.
_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def arrange(folder: Path) -> None:
    """Give this process, and all that it starts, the node's view; its files go below `folder`."""
    _own_network_in_sys()
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for place in ("lib", "log"):
        own = folder / place
        own.mkdir(exist_ok=True)
        _mount("--bind", str(own), f"/var/{place}")
    for name in ("lib/kubelet", "lib/containerd", "log/pods", "log/containers"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _private_settings(folder / "settings")
    # Containers may ask to see mounts that are made later. Last, or /sys could not be rearranged.
    _mount("--make-rshared", "/")


def _own_network_in_sys() -> None:
    """Mount /sys again, for the node's own network namespace; the cgroups in it are kept."""
    with tempfile.TemporaryDirectory() as aside:
        _mount("--rbind", "/sys/fs/cgroup", aside)
        _mount("-t", "sysfs", "sysfs", "/sys")
        _mount("--move", aside, "/sys/fs/cgroup")


def _private_settings(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in _SETTINGS:
        setting, own = Path("/proc/sys") / name, folder / name.replace("/", "-")
        if setting.exists():
            own.write_text(setting.read_text())
            _mount("--bind", str(own), str(setting))


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
