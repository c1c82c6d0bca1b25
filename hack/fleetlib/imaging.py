"""Builds the images of the chart on this machine: vnode's, of the Containerfile, and a scheduler's.

No registry is asked. In place of Python's official image stands one of Debian's own packages, of
the machine's release; kube-scheduler's holds the program that fleets run, and nothing else. buildah
and its store, which lasts, do the work; an OCI layout comes out, from which real nodes can pull.
"""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from pathlib import Path

from hack.fleetlib import cachefolder, debian, progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import binaries

_REPOSITORY = Path(__file__).resolve().parents[2]
_PROGRAMS = {"buildah": "buildah", "debootstrap": "debootstrap", "tar": "tar"}
_PYTHON = ("python3", "python3-venv", "python-is-python3", "ca-certificates")
_BASE, _VNODE, _SCHEDULER = "localhost/python", "localhost/vnode", "localhost/kube-scheduler"
# What a machine behind a proxy or a mirror needs to reach a package index; not kept in the image.
_OF_THE_MACHINE = ("/etc/ssl/certs", "/etc/pip.conf")
# Not needed by what runs in the image, or of this machine.
_LEFT_OUT = (
    "dev/*",
    "proc/*",
    "sys/*",
    "var/cache/apt/*",
    "var/lib/apt/lists/*",
    "usr/share/doc/*",
)


def write(layout: Path) -> None:
    """Build both images and put them into the OCI layout in the folder `layout`, by their names.

    FleetError, with the end of what was printed, if something fails.
    """
    if os.geteuid() != 0:
        raise FleetError("building an image takes root here")
    debian.install(_PROGRAMS)
    scheduler = binaries.locate(["kube-scheduler"])["kube-scheduler"]
    with cachefolder.locked("image", lambda: progress.say("waiting for another build ...")):
        if not _is_there(_BASE):
            with progress.reported("making an image of Debian's Python"):
                _make_base()
        with progress.reported("building the image of the Containerfile"):
            _build(_VNODE, _REPOSITORY, f"--build-arg=PYTHON={_BASE}", *_volumes())
        with progress.reported("building an image of kube-scheduler"):
            _build_from(_SCHEDULER, scheduler.parent, "COPY kube-scheduler /usr/local/bin/")
        for image in (_VNODE, _SCHEDULER):
            name = image.rpartition("/")[2]
            _buildah("push", "--disable-compression", image, f"oci:{layout}:{name}")


def _make_base() -> None:
    with tempfile.TemporaryDirectory(prefix="vnode-image-") as folder:
        root, context = Path(folder) / "root", Path(folder) / "context"
        context.mkdir()
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        packages = f"--include={','.join(_PYTHON)}"
        _run(["debootstrap", "--variant=minbase", packages, suite, str(root)])
        left_out = [f"--exclude=./{path}" for path in _LEFT_OUT]
        archive = context / "root.tar"
        _run(["tar", "--create", f"--file={archive}", f"--directory={root}", *left_out, "."])
        _build_from(_BASE, context, "ADD root.tar /")


def _volumes() -> list[str]:
    return [f"--volume={path}:{path}:ro" for path in _OF_THE_MACHINE if Path(path).exists()]


def _build_from(name: str, context: Path, line: str) -> None:
    """Build an image from a Containerfile of one line."""
    _build(name, context, "--file=-", given=f"FROM scratch\n{line}\n")


def _build(name: str, context: Path, *words: str, given: str = "") -> None:
    options = ["--layers", "--isolation=chroot", "--pull=false", f"--tag={name}", *words]
    _buildah("build", *options, str(context), given=given)


def _is_there(name: str) -> bool:
    return name in _buildah("images", "--format={{.Name}}").split()


def _buildah(*words: str, given: str = "") -> str:
    store = cachefolder.path() / "image"
    places = [f"--root={store / 'storage'}", f"--runroot={store / 'run'}"]
    return _run(["buildah", *places, "--storage-driver=overlay", *words], given)


def _run(command: list[str], given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).strip().splitlines()[-20:]
        raise FleetError("\n".join([f"{' '.join(command)} failed:", *printed]))
    return done.stdout
