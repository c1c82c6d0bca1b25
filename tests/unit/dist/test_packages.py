"""What is put into the chart's package, and where the version comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import vnode
from hack.distlib import packages, source
from hack.fleetlib.errors import FleetError

ROOT = Path(__file__).resolve().parents[3]
VALUES = (ROOT / "charts" / "vnode" / "values.yaml").read_text()
DIGEST = "sha256:" + "1" * 64


def test_a_released_chart_installs_its_image_by_digest():
    made = packages.naming(VALUES, f"example.com/team/vnode@{DIGEST}", "0.2.0")
    before, after = yaml.safe_load(VALUES), yaml.safe_load(made)
    image = after["controllerManager"].pop("image")
    named = {"repository": "example.com/team/vnode", "tag": f"0.2.0@{DIGEST}"}
    assert image == before["controllerManager"].pop("image") | named
    assert after == before


@pytest.mark.parametrize("image", ["vnode", "vnode:0.2.0", "vnode@sha256:12"])
def test_an_image_without_a_digest_is_refused(image: str):
    with pytest.raises(FleetError, match="name it by its digest"):
        packages.naming(VALUES, image, "0.2.0")


def test_the_version_is_read_without_importing():
    assert source.version_of(ROOT) == vnode.__version__
