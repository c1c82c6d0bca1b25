"""`vnode get targets` shows where each Target comes from."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vnode.api import kinds
from vnode.api.objects import Object
from vnode.cli.get import cluster_views, views

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("namespace", "spec", "text"),
    [
        ("", {"clusterProfile": {"namespace": "fleet", "name": "c2"}}, "clusterprofile/fleet/c2"),
        ("team", {"clusterProfile": {"name": "c2"}}, "clusterprofile/team/c2"),
        ("", {"kubeconfigSecret": {"namespace": "vnode", "name": "s"}}, "secret/vnode/s"),
        ("team", {"kubeconfigSecret": {"name": "s"}}, "secret/team/s"),
        ("", {"self": True}, "self"),
        ("", {}, ""),
    ],
)
def test_where_a_target_comes_from_is_a_column(namespace: str, spec: Object, text: str) -> None:
    target = {"metadata": {"name": "gpu", "namespace": namespace}, "spec": spec}
    [column] = [column for column in cluster_views.TARGETS.columns if column.title == "FROM"]
    assert column.cell(views.Row(kinds.TARGETS, target, NOW)) == text


def test_the_set_that_has_made_a_target_is_a_wide_column() -> None:
    [column] = [column for column in cluster_views.TARGETS.columns if column.title == "SET"]
    target = {"metadata": {"name": "gpu", "labels": {"vnode.dev/target-set": "gpus"}}}
    assert column.wide
    assert column.cell(views.Row(kinds.CLUSTER_TARGETS, target, NOW)) == "gpus"
