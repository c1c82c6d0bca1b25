"""Rebalances, as a real API server takes, refuses and shows them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.fleets import SOURCE, vnode
from tests.integration.custom_objects import create
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import Invalid
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.placement.moves import rebalance_status
from vnode.placement.moves.rebalance_status import RebalanceSums
from vnode.planning.move_policy import IntOrPercent

WEB = {"kind": "Deployment", "name": "web"}


async def test_every_field_is_kept_and_means_what_the_agent_reads(
    client: Client, namespace: str
) -> None:
    workloads = [WEB, {"kind": "Rollout.argoproj.io", "name": "api"}]
    spec = {"workloads": workloads, "maxConcurrent": "25%", "ttlSecondsAfterFinished": 0}
    created = await create(client, kinds.REBALANCES, namespace, "now", spec=spec)
    assert created["spec"] == spec
    read = rebalance_status.decode(created)
    names = frozenset((f"deployment/{namespace}/web", f"rollout.argoproj.io/{namespace}/api"))
    assert (read.workloads, read.policy) == (names, "")
    assert (read.limit, read.ttl) == (IntOrPercent(25, is_percentage=True), 0.0)


@pytest.mark.parametrize("spec", [{}, {"policy": "web"}, {"maxConcurrent": 1000}])
async def test_fields_may_be_left_out(client: Client, namespace: str, spec: Object) -> None:
    created = await create(client, kinds.REBALANCES, namespace, "now", spec=spec)
    assert created["spec"] == spec
    rebalance_status.decode(created)


@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        ({"workloads": [WEB], "policy": "web"}, "give workloads or policy, not both"),
        ({"workloads": []}, "should have at least 1 items"),
        ({"workloads": [{"kind": "Deployment"}]}, "Required value"),
        ({"policy": ""}, "should be at least 1 chars long"),
        ({"maxConcurrent": 0}, "greater than or equal to 1"),
        ({"maxConcurrent": 1001}, "less than or equal to 1000"),
        ({"maxConcurrent": "0%"}, "should match"),
        ({"ttlSecondsAfterFinished": -1}, "greater than or equal to 0"),
        (None, "Required value"),
    ],
)
async def test_what_cannot_work_is_refused_with_the_cure(
    client: Client, namespace: str, spec: Object, cure: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await create(client, kinds.REBALANCES, namespace, "now", spec=spec)

    assert cure in refusal.value.message


async def test_its_spec_cannot_be_changed(client: Client, namespace: str) -> None:
    await create(client, kinds.REBALANCES, namespace, "now", spec={"policy": "web"})
    with pytest.raises(Invalid) as refusal:
        await client.patch(kinds.REBALANCES, "now", {"spec": {"maxConcurrent": 2}}, namespace)

    assert "cannot be changed: delete it, and create another one" in refusal.value.message
    labelled = {"metadata": {"labels": {"a": "b"}}}
    await client.patch(kinds.REBALANCES, "now", labelled, namespace)


async def test_what_the_agent_writes_is_kept_and_shown(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    created = await create(client, kinds.REBALANCES, namespace, "now", spec={"workloads": [WEB]})
    sums = RebalanceSums(workloads=1, moved=3, left=2, unmet=1, why="no room in c1")
    outcome = rebalance_status.judge(sums, is_stuck=True)
    status = rebalance_status.status(created, sums, outcome, 1, datetime.now(UTC))
    patched = await client.patch(
        kinds.REBALANCES, "now", {"status": status}, namespace, subresource="status"
    )
    assert objects.status(patched) == status
    columns = ["NAME", "STATUS", "WORKLOADS", "MOVED", "REMAINING"]
    cells = ["now", "Failed", "1", "4", "2"]
    header, row = fleet.kubectl(SOURCE, "get", "rebal", "-n", namespace).strip().split("\n")
    assert (header.split(), row.split()[:5]) == ([*columns, "AGE"], cells)
    message = "3 pods were moved, 2 could not be: no room in c1"
    wide = fleet.kubectl(SOURCE, "get", "multicluster", "-n", namespace, "-o", "wide")
    assert message in wide

    words = ("get", "rebal", "-n", namespace, "-o", "wide")
    done = vnode(*words, "--kubeconfig", fleet.kubeconfig(SOURCE))
    header, row = done.out.strip().split("\n")
    assert header.split() == [*columns, "AGE", "FOR", "MESSAGE"]
    assert row.split()[:5] == cells
    assert row.split(maxsplit=6)[6].split(maxsplit=1) == ["deployment/web", message]
