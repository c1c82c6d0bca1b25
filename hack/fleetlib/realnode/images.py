"""The images of a real node: built on the spot from the machine's static busybox, or given.

An image is three blobs (a layer, a configuration, a manifest) that name each other by their SHA-256
sums. Pure, apart from what is read.
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
    from collections.abc import Iterable, Mapping
    from pathlib import Path

PAUSE = "localhost/pause:1"
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
class Images:
    """All blobs by digest, and the manifest of each image by its name."""

    blobs: dict[str, Blob]
    manifests: dict[str, Blob]

    def __or__(self, others: Images) -> Images:
        return Images(self.blobs | others.blobs, self.manifests | others.manifests)


def from_busybox(program: Path) -> Images:
    """The images `busybox` and `pause`, whatever registry and tag one asks for."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    return build(program.read_bytes(), listed.stdout.split())


def from_layout(folder: Path) -> Images:
    """The images of an OCI layout, by the names that its index gives them."""
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
    unpacked = _layer(busybox, applets)
    # No compression to speak of: nothing is sent anywhere, and unpacking waits for it.
    packed = gzip.compress(unpacked, compresslevel=1, mtime=0)
    layer = Blob("application/vnd.oci.image.layer.v1.tar+gzip", packed)
    contents = "sha256:" + hashlib.sha256(unpacked).hexdigest()
    blobs, manifests = {layer.digest: layer}, {}
    for name, command in _COMMANDS.items():
        configuration = _configuration(command, contents)
        manifest = _manifest(configuration, layer)
        blobs |= {blob.digest: blob for blob in (configuration, manifest)}
        manifests[name] = manifest
    return Images(blobs, manifests)


def _layer(busybox: bytes, applets: Iterable[str]) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for path, mode in _FOLDERS.items():
            folder = tarfile.TarInfo(path)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            archive.addfile(folder)
        _add(archive, "bin/busybox", busybox, 0o755)
        for path, text in _FILES.items():
            _add(archive, path, text.encode(), 0o644)
        for applet in sorted(set(applets) - {"busybox"}):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return output.getvalue()


def _add(archive: tarfile.TarFile, path: str, content: bytes, mode: int) -> None:
    file = tarfile.TarInfo(path)
    file.size, file.mode = len(content), mode
    archive.addfile(file, io.BytesIO(content))


def _configuration(command: list[str], contents: str) -> Blob:
    machine = platform.machine()
    described = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": command, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [contents]},
    }
    return Blob("application/vnd.oci.image.config.v1+json", json.dumps(described).encode())


def _manifest(configuration: Blob, layer: Blob) -> Blob:
    described = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": configuration.descriptor,
        "layers": [layer.descriptor],
    }
    return Blob(_MANIFEST, json.dumps(described).encode())
