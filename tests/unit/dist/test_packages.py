"""What is put into the chart's package, and where the version comes from."""

from __future__ import annotations

import json
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


def test_alerts_of_a_released_chart_link_to_its_pages():
    pages = packages.runbooks("https://git.example.com/o/r/", "v0.2.0")
    assert pages == "https://git.example.com/o/r/blob/v0.2.0/docs/runbooks"
    made = packages.linking(VALUES, pages)
    before, after = yaml.safe_load(VALUES), yaml.safe_load(made)
    assert after["monitoring"]["prometheusRule"].pop("runbooks") == pages
    assert before["monitoring"]["prometheusRule"].pop("runbooks") == ""
    assert after == before


@pytest.mark.parametrize(("page", "tag"), [("", ""), ("", "v0.2.0"), ("https://x.example", "")])
def test_without_a_page_and_a_tag_nobody_knows_where_runbooks_are(page: str, tag: str):
    assert packages.runbooks(page, tag) == ""


def test_alerts_and_dashboard_can_be_had_without_the_chart(tmp_path: Path):
    where = "https://git.example.com/o/r/blob/v0.2.0/docs/runbooks"
    release = source.ReleaseSource("0.2.0", "0" * 40, 0, ROOT)
    packages.monitoring(release, tmp_path, where)
    rules = yaml.safe_load((tmp_path / "vnode-alerts-0.2.0.yaml").read_text())
    [group] = rules["groups"]
    for rule in group["rules"]:
        assert rule["annotations"]["runbook_url"] == f"{where}/{rule['alert']}.md"
    dashboard = json.loads((tmp_path / "vnode-dashboard-0.2.0.json").read_text())
    assert dashboard["panels"]


def test_the_version_is_read_without_importing():
    assert source.version_of(ROOT) == vnode.__version__
