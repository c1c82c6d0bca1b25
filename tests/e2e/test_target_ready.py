"""Ready of a Target says that a pod would start there, and is no matter of its virtual node."""

from __future__ import annotations

from tests import kit
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

NODE = "admiralty-default-c3"


def is_silent(target: Object) -> bool:
    ready = objects.condition(target, "Ready") or {}
    return (ready.get("reason"), ready.get("status")) == ("NoAnswer", "False")


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
