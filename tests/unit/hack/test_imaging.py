"""Which images are built, and for which architectures."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from hack.fleetlib import debian, emulation, imaging
from hack.fleetlib.errors import FleetError
from hack.fleetlib.imaging import Variant
from hack.fleetlib.realnode import images


@pytest.fixture(autouse=True)
def of_amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imaging, "_machine", lambda: "amd64")


@pytest.mark.parametrize(
    ("variant", "name", "base"),
    [
        (Variant("amd64"), "localhost/vnode", "localhost/python"),
        (Variant("amd64", "distroless"), "localhost/vnode-distroless", "localhost/python"),
        (Variant("arm64"), "localhost/vnode-arm64", "localhost/python-arm64"),
        (
            Variant("arm64", "distroless"),
            "localhost/vnode-distroless-arm64",
            "localhost/python-arm64",
        ),
    ],
)
def test_no_two_variants_share_a_name(variant: Variant, name: str, base: str):
    assert (variant.name, variant.base) == (name, base)


def test_the_machines_own_architecture_needs_no_emulator(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(debian, "install", lambda _programs: pytest.fail("installed"))
    emulation.ensure("amd64", "amd64")


def test_an_unknown_architecture_is_refused_with_those_that_are_known():
    with pytest.raises(FleetError, match="no image is built for s390x: use one of arm64, amd64"):
        emulation.ensure("s390x", "amd64")


def test_an_archive_is_served_as_it_is_beside_what_was_built(tmp_path: Path):
    built, given = (
        images.image(name, [images.layer([images.LayerEntry(f"opt/{name}")])], {})
        for name in ("kube-scheduler", "name-that-buildah-gave")
    )
    images.write_layout(built, tmp_path / "layout")
    images.write_layout(given, tmp_path / "given")
    archive = tmp_path / "given.oci.tar"
    with tarfile.open(archive, "w") as opened:
        for part in (tmp_path / "given").iterdir():
            opened.add(part, part.name)

    imaging.add(tmp_path / "layout", archive, "vnode")

    served = images.from_layout(tmp_path / "layout")
    [manifest] = given.manifests.values()
    assert served.manifests == {**built.manifests, "vnode": manifest}
    assert served.blobs == built.blobs | given.blobs
