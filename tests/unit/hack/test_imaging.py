"""Which images are built, and for which architectures."""

from __future__ import annotations

import pytest

from hack.fleetlib import debian, emulation, imaging
from hack.fleetlib.errors import FleetError
from hack.fleetlib.imaging import Variant


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
