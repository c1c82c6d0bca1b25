"""Reads an archive of an OCI image layout: one image, whose blobs name each other by digests."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """An image: the digest of its manifest, its configuration, and its layers, the first below."""

    digest: str
    config: dict[str, Any]
    layers: tuple[bytes, ...]

    def file(self, path: str) -> bytes | None:
        """Return a file of the image, as the uppermost layer that has it says; None without."""
        for layer in reversed(self.layers):
            with tarfile.open(fileobj=io.BytesIO(layer)) as opened:
                for header in opened:
                    if header.name.removeprefix("./") == path:
                        found = opened.extractfile(header)
                        return found.read() if found else None
        return None


def read(archive: Path) -> ImageArchive:
    """Read an archive; FleetError if a blob is missing, or is not what its digest says."""
    with tarfile.open(archive) as opened:

        def blob(descriptor: dict[str, Any]) -> bytes:
            return _checked(opened, archive, descriptor)

        listed = opened.extractfile("index.json")
        assert listed is not None
        [described] = json.loads(listed.read())["manifests"]
        manifest = json.loads(blob(described))
        config = json.loads(blob(manifest["config"]))
        return ImageArchive(described["digest"], config, tuple(map(blob, manifest["layers"])))


def _checked(opened: tarfile.TarFile, archive: Path, descriptor: dict[str, Any]) -> bytes:
    algorithm, _, value = descriptor["digest"].partition(":")
    try:
        found = opened.extractfile(f"blobs/{algorithm}/{value}")
    except KeyError:
        found = None
    content = found.read() if found else b""
    if hashlib.new(algorithm, content).hexdigest() != value or len(content) != descriptor["size"]:
        raise FleetError(f"{archive.name}: {descriptor['digest']} is missing or damaged")
    return content
