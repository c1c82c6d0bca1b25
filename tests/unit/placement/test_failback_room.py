"""Failback evicts as many pods as there is room for, goes up every tier, and ends there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment
from tests.unit.placement.test_failback import placeholders_kept
from tests.unit.pods.policies import entry, spread
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.clock import Clock
from vnode.planning.move_policy import Failback, FailbackMode, IntOrPercent
from vnode.planning.policy import Mode, PlacementTarget

pytestmark = pytest.mark.looptime

LAG = 1.5
"""Seconds until a report has what is free."""
TRIED = 8.0
"""Seconds until a placeholder is tried again, and says that there is no room any more."""
MODES = [FailbackMode.PLACEHOLDER, FailbackMode.PROBE]


class SlowRoom(FrankRoom):
    """Reports what is free a while late, and has placeholders tried again later still."""

    def report_room(self) -> None:
        asyncio.get_running_loop().call_later(LAG, super().report_room)

    def report_openings(self) -> None:
        if len(self.taken) < self.places:
            super().report_openings()
        else:
            asyncio.get_running_loop().call_later(TRIED, super().report_openings)


def tiers(
    clock: Clock,
    *places: int,
    mode: FailbackMode,
    fields: Sequence[dict[str, int]] = (),
    at_once: int = 1,
    stabilization: float | None = 5,
    kind: Mode = Mode.FILL,
) -> MovingEnvironment:
    """Return clusters with room for that many pods; without `fields` they fill in their order."""
    rooms = [SlowRoom(f"c{number}", clock, count) for number, count in enumerate(places, 1)]
    given: Sequence[dict[str, int]] = fields or [{} for _ in rooms]
    entries: list[PlacementTarget] = [
        entry(room.node, **each) for room, each in zip(rooms, given, strict=True)
    ]
    failback = Failback(mode, stabilization, IntOrPercent(at_once))
    policy = spread(*entries, mode=kind, after=10, failback=failback)
    return MovingEnvironment(clock, policy, *rooms)


async def settled(env: MovingEnvironment, **expected: int) -> None:
    """Let three minutes pass, after which the pods are to be so."""
    await asyncio.sleep(180)
    assert env.living() == expected


def waiting(env: MovingEnvironment) -> dict[str, int]:
    """Count placeholders by cluster."""
    found = Counter(node for pod in env.pods() for node in placeholders.of(pod))
    names = {room.node: room.link.target.name for room in env.rooms}
    return {names[node]: count for node, count in found.items()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [Mode.FILL, Mode.SPREAD])
async def test_pods_of_the_worst_tier_go_up_to_a_middle_one(
    clock: Clock, mode: FailbackMode, kind: Mode
) -> None:
    fields = [{"tier": 3}, {"tier": 2}, {"tier": 1}] if kind is Mode.SPREAD else []
    env = tiers(clock, 2, 2, 10, mode=mode, fields=fields, kind=kind)
    async with placeholders_kept(env, clock):
        env.scale(8)
        await settled(env, c1=2, c2=2, c3=4)
        env.rooms[1].grow(4)
        await settled(env, c1=2, c2=4, c3=2)
        assert len(env.evictions) == 2
        marked = [p for p in env.pods() if keys.OVERFLOWED_FROM in objects.annotations(p)]
        assert len(marked) == 6
        assert waiting(env)["c1"] == 6

        env.rooms[0].grow(3)
        await settled(env, c1=3, c2=4, c3=1)
        env.rooms[0].grow(8)
        await settled(env, c1=8)
        assert len(env.evictions) == 8
        await asyncio.sleep(3600)
        assert (env.living(), len(env.evictions)) == ({"c1": 8}, 8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # The middle tier has two clusters, of which the second has twice the weight.
        (
            [{"tier": 2}, {"tier": 1, "weight": 1}, {"tier": 1, "weight": 2}, {"weight": 1}],
            {"c1": 2, "c2": 2, "c3": 4, "c4": 2},
        ),
        # One of them may have no more than it has.
        (
            [{"tier": 2}, {"tier": 1, "maximum": 1}, {"tier": 1, "weight": 1}, {"weight": 1}],
            {"c1": 2, "c2": 1, "c3": 5, "c4": 2},
        ),
        # The worst tier has a minimum, which stays.
        (
            [{"tier": 2}, {"tier": 1}, {"tier": 1}, {"minimum": 3}],
            {"c1": 2, "c2": 3, "c3": 2, "c4": 3},
        ),
    ],
)
async def test_shares_of_a_middle_tier_hold(
    clock: Clock, mode: FailbackMode, fields: list[dict[str, int]], expected: dict[str, int]
) -> None:
    env = tiers(clock, 2, 1, 1, 10, mode=mode, fields=fields, kind=Mode.SPREAD)
    if not any("weight" in each for each in fields):
        fields[0]["weight"] = 1
        env = tiers(clock, 2, 1, 1, 10, mode=mode, fields=fields, kind=Mode.SPREAD)

    async with placeholders_kept(env, clock):
        env.scale(10)
        await settled(env, c1=2, c2=1, c3=1, c4=6)
        for room, places in zip(env.rooms[1:3], (expected["c2"], expected["c3"]), strict=True):
            room.grow(places + (places == 1))

        await asyncio.sleep(300)
        assert env.living() == expected
        moved = len(env.evictions)
        await asyncio.sleep(3600)
        assert (env.living(), len(env.evictions)) == (expected, moved)
        assert moved == expected["c2"] + expected["c3"] - 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("more", [1, 2, 3])
async def test_no_more_are_moved_at_once_than_there_is_room_for(
    clock: Clock, mode: FailbackMode, more: int
) -> None:
    env = tiers(clock, 2, 10, mode=mode, at_once=5)
    async with placeholders_kept(env, clock):
        env.scale(8)
        await settled(env, c1=2, c2=6)
        env.rooms[0].grow(2 + more)
        await settled(env, c1=2 + more, c2=6 - more)
        assert len(env.evictions) == more
        env.rooms[0].grow(8)
        await settled(env, c1=8)
        assert len(env.evictions) == 6


@pytest.mark.parametrize("mode", MODES)
async def test_a_back_off_ends_when_there_is_more_room_than_there_was_in_vain(
    clock: Clock, mode: FailbackMode
) -> None:
    env = tiers(clock, 2, 10, mode=mode)
    async with placeholders_kept(env, clock):
        env.scale(8)
        await settled(env, c1=2, c2=6)
        env.rooms[0].lies = 1  # there seems to be a place, which nobody gets
        if mode is FailbackMode.PLACEHOLDER:
            _say_that_they_could_start(env.rooms[0])

        env.rooms[0].report_room()
        await settled(env, c1=2, c2=6)
        assert len(env.evictions) == 1
        assert "none is moved there until" in env.events_of("MoveFailed")[0][1]
        env.rooms[0].lies = None
        env.rooms[0].grow(5)
        await settled(env, c1=5, c2=3)
        assert len(env.evictions) == 4


def _say_that_they_could_start(room: FrankRoom) -> None:
    refusal = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    for candidate in room.server.all(kinds.POD_CHAPERONS):
        if objects.name(candidate) not in room.taken:
            room.report(candidate, {"conditions": [{**refusal, "message": keys.COULD_START}]})


async def test_room_that_a_placeholder_is_given_counts_before_an_autoscaler_takes_it_back(
    clock: Clock,
) -> None:
    env = tiers(clock, 2, 10, mode=FailbackMode.PLACEHOLDER, stabilization=None)
    async with placeholders_kept(env, clock):
        env.scale(4)
        await settled(env, c1=2, c2=2)
        env.rooms[0].grow(3)
        await asyncio.sleep(18)
        assert env.living() == {"c1": 3, "c2": 1}
