"""Ready of a Target says that a pod would start there, and is no matter of its virtual node."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import yaml

from tests import kit
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.cli import scheduler_config
from vnode.kube.client import Client
from vnode.nodes import candidate_scheduler

NODE = "admiralty-default-c3"


REFUSED = {"NoAnswer", "SchedulerSilent"}
"""The second may come first where everything takes long."""


def is_not_ready(target: Object, reasons: set[str]) -> bool:
    ready = objects.condition(target, "Ready") or {}
    return ready.get("reason") in reasons and ready.get("status") == "False"


def is_silent(target: Object) -> bool:
    return is_not_ready(target, REFUSED)


async def test_a_target_whose_scheduler_is_dead_is_not_ready_and_evicts_nobody(
    fleet: Fleet, source: Client
) -> None:
    await source.create(kinds.PODS, kit.pod_in("c3", "before"), "default")
    before = await kit.until_running(source, "before")
    fleet.run("stop", "c3", "candidate-scheduler")
    try:
        await source.create(kinds.PODS, kit.pod_in("c3", "after"), "default")
        target = await kit.until_one(source, kinds.TARGETS, "c3", "default", is_silent)
        assert objects.is_condition_true(target, "Connected")
        node = await source.get(kinds.NODES, NODE)
        assert objects.is_ready(node)
        assert not [t for t in objects.spec(node)["taints"] if t["effect"] == "NoExecute"]
    finally:
        fleet.run("start", "c3", "candidate-scheduler")

    command = ("wait", "--for=condition=Ready", "target/c3", kit.TIMEOUT)
    assert "condition met" in fleet.kubectl("c1", *command)
    await kit.until_running(source, "after")
    still = await source.get(kinds.PODS, "before", "default")
    assert objects.uid(still) == objects.uid(before)
    assert not objects.is_terminating(still)


@pytest.fixture
async def elected(fleet: Fleet, source: Client, c3: Client) -> AsyncIterator[None]:
    """Have the candidate scheduler of c3 elect a leader: the chart's does, those of fleets do not.

    Until there is a Lease, the agent looks once a minute.
    """
    file = fleet.folder / "c3" / "candidate-scheduler.yaml"
    before = file.read_text()
    config = yaml.safe_load(before) | {
        "leaderElection": scheduler_config.build("https://of.no.matter")["leaderElection"]
    }
    fleet.run("stop", "c3", "candidate-scheduler")
    file.write_text(yaml.safe_dump(config))
    fleet.run("start", "c3", "candidate-scheduler")
    lease = (candidate_scheduler.LEASE, "vnode")
    try:
        await kit.until_one(c3, kinds.LEASES, *lease, objects.spec)
        yield
    finally:
        fleet.run("stop", "c3", "candidate-scheduler")
        file.write_text(before)
        await c3.delete(kinds.LEASES, *lease)
        fleet.run("start", "c3", "candidate-scheduler")
        await kit.until_one(source, kinds.TARGETS, "c3", "default", objects.is_ready, seconds=120)


@pytest.mark.usefixtures("elected")
async def test_a_target_whose_scheduler_is_dead_is_not_ready_where_no_pod_wants_to_go(
    fleet: Fleet, source: Client, c3: Client
) -> None:
    fleet.run("stop", "c3", "candidate-scheduler")
    target = await kit.until_one(
        source,
        kinds.TARGETS,
        "c3",
        "default",
        lambda found: is_not_ready(found, {"SchedulerSilent"}),
        seconds=240,
    )
    assert objects.is_condition_true(target, "Connected")
    summary = await c3.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    since = objects.annotations(summary)[keys.SCHEDULER_SILENT]
    assert since in (objects.condition(target, "Ready") or {})["message"]
    told = vnode("doctor", "--source", fleet.kubeconfig("c1"))
    assert told.code == 3  # something fails
    assert f"it has not renewed its Lease since {since}" in " ".join(told.out.split())
    fleet.run("start", "c3", "candidate-scheduler")
    command = ("wait", "--for=condition=Ready", "target/c3", "--timeout=120s")
    assert "condition met" in fleet.kubectl("c1", *command)
