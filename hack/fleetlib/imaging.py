"""Builds the images of the chart on this machine: vnode's, of the Containerfile, and a scheduler's.

No registry is asked. In place of Python's official image stands one of Debian's own packages, of
the machine's release; kube-scheduler's holds the program that fleets run, and nothing else. buildah
and its store, which lasts, do the work. An OCI layout comes out, from which real nodes can pull, or
an archive of vnode's image alone, for any architecture that the machine runs or emulates.
"""

from __future__ import annotations

import json
import os
import platform
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import cachefolder, debian, emulation, progress, running
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import binaries

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPOSITORY = Path(__file__).resolve().parents[2]
_PROGRAMS = {"buildah": "buildah", "debootstrap": "debootstrap", "tar": "tar"}
_PYTHON = ("python3", "python3-venv", "python-is-python3", "ca-certificates")
_REF_NAME = "org.opencontainers.image.ref.name"
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


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the images that the Containerfile describes."""

    architecture: str
    """As Go names it."""
    stage: str = ""
    """The stage of the Containerfile; "" is the last one."""

    @property
    def name(self) -> str:
        """The image in buildah's store; the plain one of this machine has no suffix."""
        own = self.architecture == _machine()
        parts = [self.stage, "" if own else self.architecture]
        return "-".join([_VNODE, *filter(None, parts)])

    @property
    def base(self) -> str:
        """The image that it is built on."""
        own = self.architecture == _machine()
        return _BASE if own else f"{_BASE}-{self.architecture}"


def write(layout: Path, archive: Path | None = None) -> None:
    """Build both images and put them into the OCI layout in the folder `layout`, by their names.

    With `archive`, one that `write_archive` wrote, vnode's image is that one as it is. FleetError,
    with the end of what was printed, if something fails.
    """
    scheduler = binaries.locate(["kube-scheduler"])["kube-scheduler"]
    with _building():
        with progress.reported("building an image of kube-scheduler"):
            _build_from(_SCHEDULER, scheduler.parent, "COPY kube-scheduler /usr/local/bin/")
        images = [_SCHEDULER]
        if archive is None:
            _build_variant(Variant(_machine()))
            images.append(_VNODE)
        for image in images:
            name = image.rpartition("/")[2]
            _buildah("push", "--disable-compression", image, f"oci:{layout}:{name}")
    if archive is not None:
        add(layout, archive, _VNODE.rpartition("/")[2])


def add(layout: Path, archive: Path, name: str) -> None:
    """Put the image of an OCI archive into a layout that there is, under a name; same digest."""
    listed = json.loads((layout / "index.json").read_text())
    with tarfile.open(archive) as opened:
        index = opened.extractfile("index.json")
        if index is None:
            raise FleetError(f"{archive}: no index.json: it is no OCI archive")
        [image] = json.loads(index.read())["manifests"]
        blobs = [member for member in opened.getmembers() if member.name.startswith("blobs/")]
        opened.extractall(layout, blobs, filter="data")
    listed["manifests"].append({**image, "annotations": {_REF_NAME: name}})
    (layout / "index.json").write_text(json.dumps(listed))


def write_archive(file: Path, variant: Variant, source: Path = _REPOSITORY, epoch: int = 0) -> None:
    """Build an image of the checkout `source`, and write it as an OCI archive; raise FleetError.

    All that the build adds has the time `epoch`, unless that is 0.
    """
    with _building():
        _build_variant(variant, source, epoch)
        file.unlink(missing_ok=True)
        _buildah("push", variant.name, f"oci-archive:{file}:{variant.name.rpartition('/')[2]}")


@contextmanager
def _building() -> Iterator[None]:
    """Hold the store of images, and the programs that it takes; raise FleetError."""
    if os.geteuid() != 0:
        raise FleetError("building an image takes root here")
    debian.install(_PROGRAMS)
    with cachefolder.locked("image", lambda: progress.say("waiting for another build ...")):
        yield


def _build_variant(variant: Variant, source: Path = _REPOSITORY, epoch: int = 0) -> None:
    emulation.ensure(variant.architecture, _machine())
    if not _is_there(variant.base):
        with progress.reported(f"making an image of Debian's Python for {variant.architecture}"):
            _make_base(variant)
    options = [f"--build-arg=PYTHON={variant.base}", *_volumes()]
    options += [f"--target={variant.stage}"] if variant.stage else []
    options += [f"--timestamp={epoch}"] if epoch else []
    with progress.reported(f"building {variant.name.rpartition('/')[2]} of the Containerfile"):
        _build(variant.name, source, *options, _platform(variant))


def _platform(variant: Variant) -> str:
    return f"--platform=linux/{variant.architecture}"


def _machine() -> str:
    return binaries.system_and_machine()[1]


def _make_base(variant: Variant) -> None:
    with tempfile.TemporaryDirectory(prefix="vnode-image-") as folder:
        root, context = Path(folder) / "root", Path(folder) / "context"
        context.mkdir()
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        chosen = [f"--include={','.join(_PYTHON)}", f"--arch={variant.architecture}"]
        running.output(["debootstrap", "--variant=minbase", *chosen, suite, str(root)])
        left_out = [f"--exclude=./{path}" for path in _LEFT_OUT]
        archive = context / "root.tar"
        running.output(
            ["tar", "--create", f"--file={archive}", f"--directory={root}", *left_out, "."]
        )
        _build_from(variant.base, context, "ADD root.tar /", _platform(variant))


def _volumes() -> list[str]:
    return [f"--volume={path}:{path}:ro" for path in _OF_THE_MACHINE if Path(path).exists()]


def _build_from(name: str, context: Path, line: str, *words: str) -> None:
    """Build an image from a Containerfile of one line."""
    _build(name, context, "--file=-", *words, given=f"FROM scratch\n{line}\n")


def _build(name: str, context: Path, *words: str, given: str = "") -> None:
    options = ["--layers", "--isolation=chroot", "--pull=false", f"--tag={name}", *words]
    _buildah("build", *options, str(context), given=given)


def _is_there(name: str) -> bool:
    return name in _buildah("images", "--format={{.Name}}").split()


def _buildah(*words: str, given: str = "") -> str:
    store = cachefolder.path() / "image"
    places = [f"--root={store / 'storage'}", f"--runroot={store / 'run'}"]
    return running.output(["buildah", *places, "--storage-driver=overlay", *words], given)
