"""`vnode get` shows of each kind what `kubectl get` shows, by the CRD's printer columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vnode.api import kinds
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.cli.get import resources, views
from vnode.cli.get.views import View

ELSEWHERE = {
    ("sources", "USER"): "SUBJECT",
    ("sources", "SERVICE ACCOUNT"): "SUBJECT",
    ("targets", "SELF"): "FROM",
    ("targets", "SECRET"): "FROM",
    ("targets", "PROFILE"): "FROM",
    ("targetsets", "REMOVAL"): "POLICY",
    ("tokens", "SECRET"): "NAME",  # the Secret has the request's name
    ("tokens", "TOKEN"): "REASON",
}
"""Where a view has a column for what kubectl shows in another one, or in several."""
CRDS = {crd["spec"]["names"]["kind"]: crd for crd in manifests.crds()}
OF_KINDS = [
    pytest.param(view, selection.kind, id=selection.kind.kind)
    for view in map(resources.view, resources.NAMES)
    for selection in view.selections(None)
    if selection.kind.kind in CRDS
]


def printed(kind: Kind) -> list[Object]:
    [version] = CRDS[kind.kind]["spec"]["versions"]
    return list(version["additionalPrinterColumns"])


@pytest.mark.parametrize(("view", "kind"), OF_KINDS)
def test_each_column_of_kubectl_is_there_and_wide_ones_may_be_wide(view: View, kind: Kind) -> None:
    shown = {column.title: column for column in view.columns}
    for column in printed(kind):
        title = column["name"].upper()
        title = ELSEWHERE.get((view.name, title), title)
        assert title in shown, f"kubectl get {kind.plural} shows {title}"
        assert column.get("priority") or not shown[title].wide


@pytest.mark.parametrize(("view", "kind"), OF_KINDS)
def test_whether_an_object_is_ready_is_its_condition(view: View, kind: Kind) -> None:
    paths = {column["name"]: column["jsonPath"] for column in printed(kind)}
    if paths.get("Ready") != '.status.conditions[?(@.type=="Ready")].status':
        return

    [column] = [column for column in view.columns if column.title == "READY"]
    for status in ("True", "False", "Unknown"):
        conditions = [{"type": "Accepted", "status": "x"}, {"type": "Ready", "status": status}]
        obj = {"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": conditions}}
        assert column.cell(views.Row(kind, obj, datetime(2026, 1, 1, tzinfo=UTC))) == status


def test_all_kinds_with_a_view_are_looked_at() -> None:
    """A kind of another group, such as Nodes, has no CRD of ours."""
    compared = {param.values[1] for param in OF_KINDS}
    assert {kinds.PLACEMENT_POLICIES, kinds.CLUSTER_OVERRIDE_POLICIES, kinds.TARGETS} <= compared
    assert len(compared) == 12
