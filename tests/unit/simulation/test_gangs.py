"""Gangs in a simulated source and its targets: all start, or none does."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.apiserver.store import Change
from tests.faults.snapshot import Violation
from tests.simulation import gang_schedules, many_gangs
from tests.simulation.gang_world import AgentKill, GangJob, GangWorld, run
from tests.simulation.many_gangs import ManyGangs
from tests.simulation.schedule import SOURCE, WorkloadOwner
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object


def started(world: GangWorld) -> dict[str, float]:
    assert world.watcher.wrong == []
    return world.watcher.started


def test_a_gang_starts_in_the_one_target_that_has_room_for_all_of_it() -> None:
    world = GangWorld({"c2": (2, 1), "c3": (2, 2)}, [GangJob("a", 4, 4)], 1, 0.005)
    run(world, 20)
    assert started(world).keys() == {"a"}
    assert world.watcher.places == {"a": {"c3"}}


def test_gangs_of_a_group_that_is_kept_together_start_in_one_target() -> None:
    jobs = [GangJob("a", 4, 4, group="train"), GangJob("b", 3, 3, group="train")]
    world = GangWorld({"c2": (2, 1), "c3": (4, 4), "c4": (4, 4)}, jobs, 1, 0.005)
    run(world, 30)
    assert started(world).keys() == {"a", "b"}
    [place] = world.watcher.places["a"]
    assert world.watcher.places["b"] == {place}


def test_a_gang_that_is_kept_together_starts_once_another_has_left_a_target() -> None:
    jobs = [GangJob("a", 3, 3, runs=10.0), GangJob("b", 4, 4, at=5.0, group="train")]
    world = GangWorld({"c2": (2, 2)}, jobs, 1, 0.005)
    run(world, 60)
    assert started(world).keys() == {"a", "b"}


def test_an_incomplete_gang_waits_and_says_for_how_many() -> None:
    world = GangWorld({"c2": (4, 4)}, [GangJob("a", 4, 3)], 1, 0.005)
    run(world, 20)
    assert world.messages("a") == {"waiting for 1 of 4 pods of the gang a"}
    assert world.running("a") == 0


def test_a_pod_that_is_lost_once_the_others_have_finished_starts_without_them() -> None:
    owner = WorkloadOwner.STATEFUL_SET  # any controller
    job = GangJob("a", 4, 4, runs=10.0, last_runs=30.0, owner=owner)
    world = GangWorld({"c2": (4, 4)}, [job], 1, 0.005)
    lost: list[Object] = []

    def on_change(kind: Kind, _change: Change) -> None:
        """Have the last one replaced as soon as the others have finished."""
        pods = world.pods_of("a") if kind is kinds.PODS and not lost else []
        left = [each for each in pods if objects.status(each)["phase"] == "Running"]
        if len(left) == 1 and len([p for p in pods if objects.is_finished(p)]) == 3:
            lost.extend(left)
            world.sources[SOURCE].soon(lambda: replace(left[0]))

    def replace(pod: Object) -> None:
        world.delete(pod)
        world.make(job, "4")

    world.sources[SOURCE].server.store.changed.add(on_change)
    run(world, 100)
    assert lost
    assert started(world).keys() == {"a"}
    phases = [objects.status(each)["phase"] for each in world.pods_of("a")]
    assert phases.count("Succeeded") == 4, phases


def test_while_pods_of_a_gang_are_created_few_writes_say_what_the_others_wait_for() -> None:
    world = GangWorld({"c2": (4, 4)}, [GangJob("a", 201, 200, every=0.05)], 1, 0.005)
    run(world, 25)
    assert world.messages("a") == {"waiting for 1 of 201 pods of the gang a"}
    written = world.sources[SOURCE].server.count("patch", kinds.PODS, subresource="status")
    assert 200 <= written <= 500


def test_a_gang_that_fits_nowhere_starts_nothing_and_says_how_many_have_a_place() -> None:
    world = GangWorld({"c2": (2, 1), "c3": (1, 1)}, [GangJob("a", 4, 4)], 1, 0.005)
    run(world, 30)
    [message] = world.messages("a")
    assert "3 of 4 have a place in c2; 1 waits: Insufficient cpu" in message
    assert "2 of 4 have a place in c3; 2 wait: Insufficient cpu" in message
    assert world.running("a") == 0


@pytest.mark.parametrize("seed", range(4))
def test_gangs_take_turns_where_only_some_fit(seed: int) -> None:
    dice = random.Random(seed)
    jobs = [
        GangJob(f"g{n}x", size, size, dice.uniform(0, 5), runs=10.0)
        for n, size in enumerate(dice.choice((2, 3, 4, 5)) for _ in range(6))
    ]
    world = GangWorld({"c2": (4, 2), "c3": (3, 3)}, jobs, seed, dice.choice((0.001, 0.02, 0.1)))
    run(world, 120)
    assert started(world).keys() == {job.name for job in jobs}
    assert all(len(places) == 1 for places in world.watcher.places.values())


@pytest.mark.parametrize("seed", range(6))
def test_an_agent_that_is_killed_leaves_no_half_gang(seed: int) -> None:
    dice = random.Random(seed)
    jobs = [GangJob(f"g{n}x", 4, 4, runs=20.0) for n in range(3)]
    kills = [AgentKill(SOURCE, dice.uniform(0.3, 3.0), dice.uniform(0.1, 5.0)) for _ in range(2)]
    world = GangWorld({"c2": (4, 2), "c3": (3, 3)}, jobs, seed, 0.02)
    run(world, 200, kills=kills[:1] if seed % 2 else kills)
    assert started(world).keys() == {job.name for job in jobs}


def test_pods_that_are_bound_and_cannot_run_end_and_the_gang_starts_anew() -> None:
    world = GangWorld({"c2": (4,)}, [GangJob("a", 4, 4)], 1, 0.02)
    bound: list[asyncio.Task[None]] = []

    def on_change(kind: Kind, change: Change) -> None:
        """Kill the agent as soon as one pod is bound, and give its room to others."""
        node = objects.node_name(change.new or {})
        if kind is kinds.PODS and node and not bound:
            bound.append(asyncio.create_task(interrupt(), name="interrupt"))

    async def interrupt() -> None:
        await world.agents[SOURCE].kill()
        await asyncio.sleep(45)
        world.take("c2", 1, 150.0)
        await asyncio.sleep(45)
        world.agents[SOURCE].start()

    world.sources[SOURCE].server.store.changed.add(on_change)
    run(world, 400)
    assert started(world)["a"] > 190
    made = {objects.name(each) for each in world.pods_of("a")}
    assert made - {f"a-{n}" for n in range(4)}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_promised_of_gangs_holds_in_every_schedule(seed: int) -> None:
    assert gang_schedules.simulate(gang_schedules.draw(seed))[1] == ()


@pytest.mark.parametrize("kills", [0, 2])
def test_many_gangs_are_done_about_as_soon_as_one_by_one(kills: int) -> None:
    assert many_gangs.simulate(ManyGangs(8, 4, 1, kills))[1] == ()


def test_devices_and_room_beside_them_have_to_be_on_the_same_nodes() -> None:
    devices = {"c2": (0, 4), "c3": (2, 2)}
    job = GangJob("a", 4, 4, devices=1)
    world = GangWorld({"c2": (8, 1), "c3": (2, 2)}, [job], 1, 0.005, devices)
    run(world, 20)
    assert started(world).keys() == {"a"}
    assert world.watcher.places == {"a": {"c3"}}


@pytest.mark.parametrize("seed", range(4))
def test_launchers_and_workers_with_devices_start_together_whoever_else_wants_them(
    seed: int,
) -> None:
    dice = random.Random(seed)
    jobs = [
        GangJob(f"g{n}x", size, size, dice.uniform(0, 5), runs=8.0, devices=dice.choice((1, 1, 2)))
        for n, size in enumerate(dice.choice((2, 3, 4)) for _ in range(6))
    ]
    jobs.append(GangJob("alone", 1, 4, 1.0, runs=8.0, devices=1))
    devices = {"c2": (4, 2, 1), "c3": (2, 2, 2)}
    kills = [AgentKill(SOURCE, dice.uniform(0.5, 6.0), 0.5)] if seed % 2 else []
    world = GangWorld({"c2": (6, 3, 4), "c3": (3, 3, 3)}, jobs, seed, 0.02, devices)
    run(world, 200, kills=kills)
    assert started(world).keys() == {job.name for job in jobs}
    assert all(len(places) == 1 for places in world.watcher.places.values())


def claimers(seed: int) -> tuple[GangWorld, list[Violation]]:
    """Let gangs and single pods claim devices, some of them one together; return what is wrong."""
    dice, owner = random.Random(seed), WorkloadOwner.STATEFUL_SET  # any controller
    jobs = [
        GangJob(f"g{n}x", size, size, dice.uniform(0, 5), runs=8.0, owner=owner, claims="own")
        for n, size in enumerate(dice.choice((1, 2, 3)) for _ in range(5))
    ]
    for number in range(3):
        at = dice.uniform(0, 5)
        jobs.append(GangJob(f"s{number}x", 1, 2, at, runs=8.0, owner=owner, claims="shared"))

    claimable = {"c2": (2, 1), "c3": (2, 2)}
    world = GangWorld({"c2": (6, 6), "c3": (4, 4)}, jobs, seed, 0.02, claimable=claimable)
    kills = [AgentKill(SOURCE, dice.uniform(0.5, 8.0), 0.5)] if seed % 2 else []
    run(world, 300, kills=kills)
    assert started(world).keys() == {job.name for job in jobs}
    assert len(world.claims.given) > 2
    assert world.claims.shared_in
    return world, list(world.claims.left())


@pytest.mark.parametrize("seed", range(4))
def test_claims_get_devices_in_one_target_and_leave_nothing_in_others(seed: int) -> None:
    world, wrong = claimers(seed)
    assert wrong == []
    for name in world.jobs:
        assert all(objects.is_finished(pod) for pod in world.pods_of(name))


def test_pods_beyond_the_minimum_follow_into_the_same_target_only() -> None:
    world = GangWorld({"c2": (2, 2), "c3": (1,)}, [GangJob("a", 2, 6)], 1, 0.005)
    run(world, 30)
    assert started(world).keys() == {"a"}
    assert world.watcher.places == {"a": {"c2"}}
    assert world.running("a") == 4


def test_gangs_whose_pods_contradict_each_other_say_so() -> None:
    jobs = [GangJob("a", 2, 2, minimums=("2", "3")), GangJob("b", 1, 1, minimums=("none",))]
    world = GangWorld({"c2": (4, 4)}, jobs, 1, 0.005)
    run(world, 20)
    [message] = world.messages("a")
    assert "different annotations vnode.dev/gang-minimum (2, 3)" in message
    [message] = world.messages("b")
    assert "annotation vnode.dev/gang-minimum is 'none'" in message


@pytest.mark.parametrize("seed", range(3))
def test_gangs_of_two_sources_do_not_lock_each_other(seed: int) -> None:
    jobs = [GangJob(f"g{n}x", 4, 4, runs=8.0, source=(SOURCE, "c9")[n % 2]) for n in range(4)]
    world = GangWorld({"c2": (4, 1), "c3": (3, 1)}, jobs, seed, 0.02)
    run(world, 200)
    assert started(world).keys() == {job.name for job in jobs}


def test_a_gang_is_not_starved_by_small_pods() -> None:
    small = [GangJob(f"s{n}x", 1, 1, at=1.0 + 3.0 * n, runs=10.0) for n in range(250)]
    world = GangWorld({"c2": (4,)}, [GangJob("big", 4, 4, at=5.0), *small], 1, 0.005)
    run(world, 700)
    assert "big" in world.watcher.started
