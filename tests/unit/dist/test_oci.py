"""An image's archive is believed only as far as its digests go."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from hack.distlib import oci
from hack.fleetlib.errors import FleetError
from hack.fleetlib.realnode import images
from hack.fleetlib.realnode.images import Blob


def layer(files: dict[str, bytes]) -> Blob:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return Blob(images._LAYER, packed.getvalue())


def write(file: Path, layers: list[Blob], *, spoil: bool = False) -> Blob:
    """Write an archive of an image; return its manifest."""
    config = Blob(images._CONFIGURATION, json.dumps({"architecture": "arm64"}).encode())
    described = {"config": config.descriptor, "layers": [each.descriptor for each in layers]}
    manifest = Blob(images._MANIFEST, json.dumps(described).encode())
    entries = {
        f"blobs/sha256/{blob.digest.removeprefix('sha256:')}": blob.content
        for blob in (config, manifest, *layers)
    }
    entries["index.json"] = json.dumps({"manifests": [manifest.descriptor]}).encode()
    if spoil:
        entries[f"blobs/sha256/{layers[0].digest.removeprefix('sha256:')}"] += b"more"
    with tarfile.open(file, "w") as archive:
        for name, content in entries.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return manifest


def test_a_file_is_that_of_the_uppermost_layer(tmp_path: Path):
    file = tmp_path / "image.tar"
    below = layer({"./etc/a": b"old", "etc/b": b"below"})
    manifest = write(file, [below, layer({"etc/a": b"new"})])
    image = oci.read(file)
    assert image.digest == manifest.digest
    assert image.config == {"architecture": "arm64"}
    assert image.file("etc/a") == b"new"
    assert image.file("etc/b") == b"below"
    assert image.file("etc/c") is None


def test_a_damaged_layer_is_refused(tmp_path: Path):
    file = tmp_path / "image.tar"
    write(file, [layer({"a": b""})], spoil=True)
    with pytest.raises(FleetError, match=r"image.tar: sha256:\w+ is missing or damaged"):
        oci.read(file)
