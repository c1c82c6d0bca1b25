"""What workloads are told by a check of ours, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.kueue.environment import CHECK, KueueEnvironment, pod_set
from tests.unit.scheduling.gpu_targets import GPU, MODEL
from vnode.api import keys, kinds, objects

pytestmark = pytest.mark.looptime


@pytest.fixture
async def env(clock: Any) -> KueueEnvironment:
    return KueueEnvironment(clock)


async def test_the_check_is_said_to_be_active(env: KueueEnvironment) -> None:
    async with env.answers():
        await asyncio.sleep(1)
        check = env.server.find(kinds.ADMISSION_CHECKS, CHECK)
        assert check
        assert objects.is_condition_true(check, "Active")


async def test_a_check_with_parameters_is_not_answered(env: KueueEnvironment) -> None:
    reference = {"apiGroup": "example.com", "kind": "Config", "name": "c"}
    env.server.change(
        kinds.ADMISSION_CHECKS, CHECK, "", lambda c: c["spec"].update(parameters=reference)
    )
    env.room("t1", (0, 4, ""))
    env.workload("a", pod_set("main", 1))
    async with env.answers():
        await asyncio.sleep(60)
        check = env.server.find(kinds.ADMISSION_CHECKS, CHECK)
        assert check
        assert (objects.condition(check, "Active") or {})["status"] == "False"
        assert env.states("a") == ["Pending"]


async def test_without_a_check_of_ours_no_workload_is_read(env: KueueEnvironment) -> None:
    env.server.remove(kinds.ADMISSION_CHECKS, CHECK)
    async with env.answers():
        await asyncio.sleep(60)
        assert not env.server.watches(kinds.WORKLOADS)


async def test_a_workload_that_fits_is_held_in_a_target_with_room(env: KueueEnvironment) -> None:
    env.room("t1", (0, 2, ""))
    env.room("t2", (0, 4, ""))
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(1)
        assert env.states("a") == ["Ready"]
        update = env.entry("a")["podSetUpdates"][0]
        assert update["name"] == "main"
        assert update["annotations"] == {keys.KUEUE_WORKLOAD: "a/main"}
        assert env.node_of("a") == "t2"
        assert env.entry("a")["message"] == "target ns/t2 has room for 3 pods"


async def test_one_that_finds_no_room_waits_longer_each_time(env: KueueEnvironment) -> None:
    env.room("t1", (0, 2, ""), size=10)
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        for seconds in (60, 120, 240, 300, 300):
            await asyncio.sleep(10)
            entry = env.entry("a")
            assert (entry["state"], entry["requeueAfterSeconds"]) == ("Retry", seconds)
            env.requeue("a")

        env.room("t1", (0, 3, ""), size=10)
        await asyncio.sleep(1)
        assert env.states("a") == ["Ready"]
        assert "retryCount" not in env.entry("a")


async def test_room_that_comes_a_moment_later_is_taken(env: KueueEnvironment) -> None:
    env.room("t1", (0, 2, ""), size=10)
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(2)
        assert env.states("a") == ["Pending"]
        env.room("t1", (0, 3, ""), size=10)
        await asyncio.sleep(1)
        assert env.states("a") == ["Ready"]


async def test_what_pods_leave_that_end_is_awaited(env: KueueEnvironment) -> None:
    node = env.room("t1", (0, 1, ""), size=10)
    env.end("p1", node, cpu="2")
    env.workload("a", pod_set("main", 3))
    env.workload("b", pod_set("main", 4))
    async with env.answers():
        await asyncio.sleep(60)
        assert env.states("a", "b") == ["Pending", "Retry"]
        # The pod is gone from the source a moment before the target reports what it left.
        env.cache.remove_pod("p1")
        env.room("t2", (0, 0, ""))
        await asyncio.sleep(1)
        assert env.states("a") == ["Pending"]
        env.room("t1", (0, 3, ""), size=10)
        await asyncio.sleep(1)
        assert env.states("a") == ["Ready"]


async def test_pods_that_never_end_are_not_awaited_for_ever(env: KueueEnvironment) -> None:
    node = env.room("t1", (0, 1, ""), size=10)
    env.end("p1", node, cpu="2")
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(110)
        assert env.states("a") == ["Pending"]
        await asyncio.sleep(20)
        assert env.states("a") == ["Retry"]


async def test_four_of_ten_are_let_in_where_there_is_room_for_four(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""), size=10)
    for number in range(10):
        env.workload(f"w{number}", pod_set("main", 1))

    async with env.answers():
        await asyncio.sleep(10)
        states = env.states(*(f"w{number}" for number in range(10)))
        assert (states.count("Ready"), states.count("Retry")) == (4, 6)


async def test_two_of_three_pods_are_never_both_let_in_where_four_fit(clock: Any) -> None:
    for number in range(20):
        env = KueueEnvironment(clock)
        env.room("t1", *[(0, 4 // (1 + number % 2), "")] * (1 + number % 2), size=10)
        env.workload("a", pod_set("main", 3))
        env.workload("b", pod_set("main", 3))
        async with env.answers():
            await asyncio.sleep(10)
            assert sorted(env.states("a", "b")) == ["Ready", "Retry"]


async def test_a_new_leader_knows_what_was_promised(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""), size=10)
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(1)

    env.workload("b", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a", "b") == ["Ready", "Retry"]


async def test_a_promise_ends_after_five_minutes(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""), size=10)
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(290)
        env.workload("b", pod_set("main", 3))
        await asyncio.sleep(8)
        assert env.states("a", "b") == ["Ready", "Retry"]
        env.requeue("b")
        await asyncio.sleep(6)
        assert env.states("a", "b") == ["Ready", "Ready"]


async def test_a_promise_ends_with_its_workload(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""), size=10)
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(1)
        env.workload("b", pod_set("main", 3))
        await asyncio.sleep(1)
        env.finish("a")
        await asyncio.sleep(7)
        env.requeue("b")
        await asyncio.sleep(1)
        assert env.states("b") == ["Ready"]


async def test_pods_that_come_take_over_what_was_promised(env: KueueEnvironment) -> None:
    node = env.room("t1", (0, 4, ""), size=10)
    env.workload("a", pod_set("main", 2))
    async with env.answers() as checks:
        await asyncio.sleep(1)
        for uid in ("p1", "p2"):
            env.come(checks, "a", uid, node)

        env.workload("early", pod_set("main", 3))
        await asyncio.sleep(1)
        assert env.states("early") == ["Pending"]  # the scheduler's promises count
        env.room("t1", (0, 2, ""), size=10)
        env.workload("b", pod_set("main", 2))
        await asyncio.sleep(1)
        assert env.states("b") == ["Ready"]


async def test_what_the_scheduler_has_promised_others_counts(env: KueueEnvironment) -> None:
    node = env.room("t1", (0, 4, ""), size=10)
    other: Any = {"metadata": {"name": "o", "namespace": "ns", "uid": "o"}}
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    env.cache.assume({**other, "spec": {"containers": [container]}}, node, env.clock.monotonic())
    env.workload("a", pod_set("main", 3))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a") == ["Retry"]
        assert "beside what others are promised" in env.entry("a")["message"]


async def test_one_that_is_larger_than_all_targets_is_rejected(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""))
    env.room("t2", (0, 2, ""), size=6)
    env.workload("a", pod_set("main", 7))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a") == ["Rejected"]
        told = "ns/t1: all its nodes have cpu 4 together, not cpu 7"
        assert told in env.entry("a")["message"]


async def test_nothing_is_rejected_where_that_is_switched_off(env: KueueEnvironment) -> None:
    marked = {"annotations": {keys.NEVER_REJECT: ""}}
    env.server.change(kinds.ADMISSION_CHECKS, CHECK, "", lambda c: c["metadata"].update(marked))
    env.room("t1", (0, 4, ""))
    env.workload("a", pod_set("main", 7))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a") == ["Retry"]


async def test_nothing_is_rejected_while_a_target_is_not_connected(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""))
    unknown = {"metadata": {"name": "admiralty-ns-t2"}, "status": {}}
    env.server.add(kinds.NODES, unknown)
    env.workload("a", pod_set("main", 7))
    async with env.answers():
        await asyncio.sleep(20)
        assert env.states("a") == ["Pending"]
        await asyncio.sleep(20)
        assert env.states("a") == ["Retry"]


async def test_a_model_that_no_target_has_is_rejected(env: KueueEnvironment) -> None:
    env.room("t1", (4, 8, "T4"))
    env.workload("a", pod_set("main", 1, gpus=1, nodeSelector={MODEL: "H100"}))
    env.workload("b", pod_set("main", 1, gpus=1, nodeSelector={MODEL: "T4"}))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a", "b") == ["Rejected", "Ready"]
        assert f"no node has {MODEL}=H100" in env.entry("a")["message"]


async def test_what_pods_are_limited_to_is_what_they_ask_for(env: KueueEnvironment) -> None:
    env.room("t1", (4, 8, "A100"), size=10)
    limited = pod_set("main", 5)
    limited["template"]["spec"]["containers"][0]["resources"] = {"limits": {GPU: "1"}}
    env.workload("a", limited)
    env.workload("b", {**limited, "count": 4})
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a", "b") == ["Rejected", "Ready"]


async def test_what_kueue_counts_of_a_limit_range_counts(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""), size=10)
    usage = {"cpu": "6", "example.com/credits": "600"}
    env.workload("a", pod_set("main", 3, cpu="1"), resourceUsage=usage)
    env.workload("b", pod_set("main", 4, cpu="1"), resourceUsage={"cpu": "none"})
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a", "b") == ["Retry", "Ready"]
        assert "Insufficient cpu" in env.entry("a")["message"]


async def test_free_devices_in_pieces_are_no_room(env: KueueEnvironment) -> None:
    env.room("t1", *[(1, 8, "A100")] * 8)
    env.workload("a", pod_set("main", 2, gpus=2))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a") == ["Retry"]
        assert "0 of 2 pods find a node" in env.entry("a")["message"]
        env.workload("b", pod_set("main", 8, gpus=1))
        await asyncio.sleep(1)
        assert env.states("b") == ["Ready"]


async def test_all_pod_sets_go_into_one_target(env: KueueEnvironment) -> None:
    env.room("t1", (4, 2, "A100"))
    env.room("t2", (2, 8, "A100"))
    env.room("t3", (4, 16, "A100"))
    env.workload("a", pod_set("launcher", 1, cpu="4"), pod_set("worker", 4, gpus=1))
    async with env.answers():
        await asyncio.sleep(1)
        assert env.node_of("a") == "t3"
        assert {each["name"] for each in env.entry("a")["podSetUpdates"]} == {"launcher", "worker"}


async def test_it_answers_for_the_pods_that_kueue_has_admitted(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""), size=10)
    env.workload("a", pod_set("main", 8), count=4)
    async with env.answers():
        await asyncio.sleep(1)
        assert env.states("a") == ["Ready"]


async def test_the_flavor_of_a_workload_chooses_its_target(env: KueueEnvironment) -> None:
    for name in ("t1", "t2"):
        env.room(name, (0, 4, ""))
        spec = {"nodeLabels": {keys.TARGET_NAME: name}}
        env.server.add(kinds.RESOURCE_FLAVORS, {"metadata": {"name": name}, "spec": spec})

    env.workload("a", pod_set("main", 3), flavors={"cpu": "t2"})
    env.workload("b", pod_set("main", 3), flavors={"cpu": "t2"})
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a", "b") == ["Ready", "Retry"]
        assert env.node_of("a") == "t2"


async def test_pods_that_topology_has_placed_are_counted_where_they_are(
    env: KueueEnvironment,
) -> None:
    for name in ("t1", "t2"):
        env.room(name, (0, 4, ""), size=10)

    def assigned(*counts: tuple[str, int]) -> Any:
        values = [{"individual": {"roots": [name for name, _ in counts]}}]
        counted = {"individual": [count for _, count in counts]}
        domains = {"domainCount": len(counts), "valuesPerLevel": values, "podCounts": counted}
        return {"levels": [keys.TARGET_NAME], "slices": [domains]}

    env.workload("a", pod_set("main", 6), topologyAssignment=assigned(("t1", 3), ("t2", 3)))
    env.workload("b", pod_set("main", 2), topologyAssignment=assigned(("t2", 2)))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a", "b") == ["Ready", "Retry"]
        assert "nodeSelector" not in env.entry("a")["podSetUpdates"][0]


async def test_checks_of_others_are_left_alone(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""))
    env.workload("a", pod_set("main", 1))
    theirs = {**env.pending(), "name": "budget", "state": "Ready"}
    env.server.change(
        kinds.WORKLOADS, "a", "ns", lambda w: w["status"]["admissionChecks"].append(theirs)
    )
    async with env.answers():
        await asyncio.sleep(1)
        found = env.server.find(kinds.WORKLOADS, "a", "ns")
        assert found
        assert found["status"]["admissionChecks"][1] == theirs
        assert env.states("a") == ["Ready"]


async def test_each_answer_is_one_write_that_undoes_no_other(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""))
    env.workload("a", pod_set("main", 1))
    async with env.answers():
        await asyncio.sleep(60)
        (patch,) = env.server.received("patch", kinds.WORKLOADS)
        assert patch.subresource == "status"
        assert patch.body["metadata"]["resourceVersion"]


async def test_an_extended_resource_that_no_target_has_is_said(env: KueueEnvironment) -> None:
    env.room("t1", (0, 4, ""))
    env.workload("a", pod_set("main", 1, gpus=1))
    async with env.answers():
        await asyncio.sleep(10)
        assert env.states("a") == ["Rejected"]
        assert GPU in env.entry("a")["message"]
