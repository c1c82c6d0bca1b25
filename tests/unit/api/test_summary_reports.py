"""Of a ClusterSummary only what its present writer keeps true is believed."""

from __future__ import annotations

import pytest

from vnode.api import keys, shapes, summary_reports
from vnode.api.objects import Object

FOREIGN = {"example.com/note": "x"}
OLD = {
    keys.AGENT_VERSION: "0.1.0",
    keys.HEARTBEAT: "2026-01-01T00:05:00Z",
    keys.CLUSTER_NAME: "c2",
    keys.CLUSTER_UID: "uid",
    keys.CLASSES: "{}",
    keys.FREE_RESOURCES: "{}",
}
"""What version 0.1 writes."""
NEW = {
    **OLD,
    keys.AGENT_VERSION: "0.2.0",
    keys.HEARTBEAT: "2026-01-01T00:00:00Z",
    keys.ROWS: "{}",
    keys.NODE_FEATURES: "{}",
    keys.USED_BY_SOURCES: "{}",
    keys.SCHEDULER_SILENT: "2026-01-01T00:00:00Z",
}


def test_all_that_a_writer_lists_is_believed() -> None:
    written = {**summary_reports.listed(NEW), **FOREIGN}
    assert summary_reports.current(written) == written


def test_what_an_older_version_does_not_know_ends_with_its_first_heartbeat() -> None:
    present = {**summary_reports.listed(NEW), **FOREIGN, **OLD}
    assert summary_reports.current(present) == {**OLD, **FOREIGN}


def test_what_a_newer_version_has_left_is_not_among_what_this_one_lists() -> None:
    of_next = {keys.OWN_PREFIX + "of-the-next-version": "x"}
    present = {**summary_reports.listed({**NEW, **of_next}), **summary_reports.listed(NEW)}
    assert summary_reports.current({**present, **of_next}) == summary_reports.listed(NEW)


@pytest.mark.parametrize("annotations", [{}, OLD, {**OLD, **FOREIGN}, {keys.CLUSTER_UID: "uid"}])
def test_of_one_that_lists_nothing_what_it_knows_is_believed(annotations: Object) -> None:
    assert summary_reports.current(annotations) == annotations


@pytest.mark.parametrize("text", ["", " ", "x", f"{NEW[keys.HEARTBEAT]}"])
def test_a_list_in_another_form_lists_nothing(text: str) -> None:
    found = summary_reports.current({**NEW, keys.KEPT: text})
    assert keys.ROWS not in found


def test_a_summary_is_received_without_what_is_stale() -> None:
    metadata = {"name": "singleton", "annotations": {**summary_reports.listed(NEW), **OLD}}
    kept = shapes.trim_summary({"metadata": metadata})
    assert kept["metadata"]["annotations"] == OLD
