"""What is done about images that cannot be built: said where all are asked for, else an error."""

from __future__ import annotations

import os

import pytest

from hack.distlib import architectures
from hack.fleetlib import emulation
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import binaries


@pytest.fixture(autouse=True)
def of_amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the kernel run nothing but programs of amd64."""

    def ensure(architecture: str, own: str) -> None:
        if architecture != own:
            raise FleetError("this kernel runs no other architectures")

    monkeypatch.setattr(binaries, "system_and_machine", lambda: ("linux", "amd64"))
    monkeypatch.setattr(emulation, "ensure", ensure)
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_an_architecture_that_cannot_be_emulated_is_left_out_with_the_reason(
    capsys: pytest.CaptureFixture[str],
):
    assert architectures.chosen("all") == ("amd64",)
    assert "no image for arm64: this kernel" in capsys.readouterr().err


def test_what_is_asked_for_by_name_is_not_left_out():
    assert architectures.chosen("amd64,arm64") == ("amd64", "arm64")
    assert architectures.chosen("none") == ()


def test_images_that_were_asked_for_take_root(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert architectures.chosen("all") == ()
    with pytest.raises(FleetError, match="--images none"):
        architectures.chosen("amd64")
