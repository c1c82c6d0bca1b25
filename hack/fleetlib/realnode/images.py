"""The images of a real node: built on the spot from the machine's static busybox, or given.

An image is three blobs (a layer, a configuration, a manifest) that name each other by their SHA-256
sums. Pure, apart from what is read and `write_layout`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import subprocess
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

PAUSE = "localhost/pause:1"
_CONFIGURATION = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_NAME = "org.opencontainers.image.ref.name"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_FOLDERS = {"bin": 0o755, "dev": 0o755, "etc": 0o755, "home": 0o755, "proc": 0o755, "root": 0o700,
            "run": 0o755, "sys": 0o755, "tmp": 0o1777, "usr": 0o755, "var": 0o755}  # fmt: skip
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
# PID 1 of a pod's sandbox: it ends when it is told to, and reaps what its pod leaves to it.
_PAUSE_COMMAND = ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"]
_COMMANDS = {"busybox": ["/bin/sh"], "pause": _PAUSE_COMMAND}
_SHELL = {"Env": ["PATH=/bin"], "WorkingDir": "/"}


@dataclass(frozen=True, slots=True)
class Blob:
    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        return "sha256:" + hashlib.sha256(self.content).hexdigest()

    @property
    def descriptor(self) -> dict[str, str | int]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """A file of a layer; a folder or a symbolic link if `kind` says so."""

    path: str
    content: bytes = b""
    mode: int = 0o644
    kind: bytes = tarfile.REGTYPE
    link: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    blob: Blob
    contents: str
    """The digest of the archive before it was packed."""


@dataclass(frozen=True, slots=True)
class Images:
    """All blobs by digest, and the manifest of each image by its name."""

    blobs: dict[str, Blob]
    manifests: dict[str, Blob]

    def __or__(self, others: Images) -> Images:
        return Images(self.blobs | others.blobs, self.manifests | others.manifests)


def from_busybox(program: Path) -> Images:
    """Return the images `busybox` and `pause`, whatever registry and tag one asks for."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    return build(program.read_bytes(), listed.stdout.split())


def from_layout(folder: Path) -> Images:
    """Return the images of an OCI layout, by the names that its index gives them."""
    index = json.loads((folder / "index.json").read_text())
    blobs: dict[str, Blob] = {}
    manifests: dict[str, Blob] = {}
    for described in index["manifests"]:
        manifest = _stored(folder, described)
        parts = json.loads(manifest.content)
        held = [manifest, *(_stored(folder, part) for part in (parts["config"], *parts["layers"]))]
        blobs |= {blob.digest: blob for blob in held}
        manifests[described["annotations"][_NAME]] = manifest
    return Images(blobs, manifests)


def _stored(folder: Path, described: Mapping[str, Any]) -> Blob:
    algorithm, _, digest = described["digest"].partition(":")
    return Blob(described["mediaType"], (folder / "blobs" / algorithm / digest).read_bytes())


def build(busybox: bytes, applets: Iterable[str]) -> Images:
    """Build the images from the program's bytes and its names."""
    layers = [layer(shell(busybox, applets))]
    made = [image(name, layers, {**_SHELL, "Cmd": cmd}) for name, cmd in _COMMANDS.items()]
    return made[0] | made[1]


def shell(busybox: bytes, applets: Iterable[str]) -> list[LayerEntry]:
    """Return the files of a layer that has a shell and what belongs to it."""
    folders = [LayerEntry(path, mode=mode, kind=tarfile.DIRTYPE) for path, mode in _FOLDERS.items()]
    files = [LayerEntry(path, text.encode()) for path, text in _FILES.items()]
    names = sorted(set(applets) - {"busybox"})
    links = [
        LayerEntry(f"bin/{name}", mode=0o777, kind=tarfile.SYMTYPE, link="busybox")
        for name in names
    ]
    return [*folders, LayerEntry("bin/busybox", busybox, 0o755), *files, *links]


def layer(entries: Iterable[LayerEntry]) -> Layer:
    """Pack files into a layer."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for entry in entries:
            file = tarfile.TarInfo(entry.path)
            file.type, file.mode, file.linkname = entry.kind, entry.mode, entry.link
            file.size = len(entry.content)
            archive.addfile(file, io.BytesIO(entry.content))
    unpacked = output.getvalue()
    # No compression to speak of: nothing is sent anywhere, and unpacking waits for it.
    packed = gzip.compress(unpacked, compresslevel=1, mtime=0)
    return Layer(Blob(_LAYER, packed), "sha256:" + hashlib.sha256(unpacked).hexdigest())


def image(name: str, layers: Sequence[Layer], config: Mapping[str, Any]) -> Images:
    """Make an image of `layers`, the lowest first; `config` says what runs in it, and how."""
    machine = platform.machine()
    described = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [one.contents for one in layers]},
    }
    configuration = Blob(_CONFIGURATION, json.dumps(described).encode())
    manifest = _manifest(configuration, [one.blob for one in layers])
    held = [configuration, manifest, *(one.blob for one in layers)]
    return Images({blob.digest: blob for blob in held}, {name: manifest})


def _manifest(configuration: Blob, layers: Sequence[Blob]) -> Blob:
    described = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": configuration.descriptor,
        "layers": [blob.descriptor for blob in layers],
    }
    return Blob(_MANIFEST, json.dumps(described).encode())


def write_layout(images: Images, folder: Path) -> None:
    """Write `images` as an OCI layout, which `from_layout` reads, into a folder that it makes."""
    for blob in images.blobs.values():
        algorithm, _, digest = blob.digest.partition(":")
        place = folder / "blobs" / algorithm
        place.mkdir(parents=True, exist_ok=True)
        (place / digest).write_bytes(blob.content)
    listed = [
        {**manifest.descriptor, "annotations": {_NAME: name}}
        for name, manifest in images.manifests.items()
    ]
    (folder / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": listed}))
