"""Alerts, dashboard and pages talk of metrics that there are, with labels that they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.fleetlib import charting, metricdocs

ROOT = Path(__file__).resolve().parents[3]
RULES = [
    rule
    for group in yaml.safe_load((charting.CHART / "files" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((charting.CHART / "dashboards" / "vnode.json").read_text())
# Of Prometheus, and of histograms. A metric of ours with such a label would be renamed on its way.
TARGET_LABELS = {"cluster", "namespace", "pod", "instance", "job", "le"}
_METRIC = re.compile(r"\b((?:vnode|process|python)_[a-z0-9_]+)(?:\{([^}]*)\})?")
_BY = re.compile(r"by \(([^)]*)\)")


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]

    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def known() -> dict[str, set[str]]:
    """Return every series name, with the labels of its metric."""
    return {name: set(metric.labels) for metric in metricdocs.described() for name in metric.series}


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_it_asks_for_metrics_and_labels_that_exist(where: str, expression: str):
    series = known()
    used = _METRIC.findall(expression)
    assert used
    labels = set(TARGET_LABELS)
    for name, matchers in used:
        assert name in series, f"{where}: no metric {name}"
        labels |= series[name]
        asked = set(re.findall(r"(\w+)\s*[=!]~?\s*\"", matchers))
        assert asked <= series[name] | TARGET_LABELS, where

    for names in _BY.findall(expression):
        assert {name.strip() for name in names.split(",")} <= labels, where


def test_each_panel_shows_the_clusters_that_were_chosen():
    """A value for all of them matches series without the label, too: Grafana's own would not."""
    [chosen] = [each for each in DASHBOARD["templating"]["list"] if each["name"] == "cluster"]
    assert chosen["allValue"] == ".*"
    for panel in panels():
        for target in panel["targets"]:
            asked = target["expr"].replace("vnode_build_info", "")
            metrics, chosen_ones = len(_METRIC.findall(asked)), asked.count('cluster=~"$cluster"')
            assert metrics == chosen_ones, panel["title"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_each_alert_says_what_to_do(rule: dict[str, Any]):
    page = ROOT / str(rule["annotations"]["runbook_url"])
    assert page.name == f"{rule['alert']}.md"
    assert page.read_text().startswith(f"# {rule['alert']}\n")
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"]


def test_each_runbook_has_its_alert():
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert pages == {rule["alert"] for rule in RULES}


def test_every_metric_of_ours_is_on_the_dashboard_or_in_an_alert():
    text = " ".join(expression for _where, expression in expressions())
    for metric in metricdocs.described():
        if metric.name.startswith("vnode_"):
            assert any(re.search(rf"\b{name}\b", text) for name in metric.series), metric.name


def test_no_two_panels_share_a_place_or_an_id():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_names_follow_the_conventions():
    for metric in metricdocs.described():
        if not metric.name.startswith("vnode_"):
            continue

        assert metric.help.endswith("."), metric.name
        if metric.type == "counter":
            assert metric.name.endswith("_total")
        if metric.type == "histogram":
            assert metric.name.endswith(("_duration_seconds", "_lag_seconds"))

        assert not set(metric.labels) & (TARGET_LABELS | {"name", "uid", "node"}), metric.name


def test_the_page_of_metrics_is_up_to_date():
    page = ROOT / "docs" / "metrics.md"
    assert page.read_text() == metricdocs.updated(page.read_text()), "run hack/metrics"
