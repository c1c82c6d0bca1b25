"""While it is read what the pods of a large gang ask for, nothing is decided about them."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import Target, is_silent, reserves
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.gangs.gang import Gang
from vnode.pods.source.gang_room import GangRooms

pytestmark = pytest.mark.looptime
GANG = {keys.ELECT: "", keys.GANG: "g", keys.GANG_MINIMUM: "2"}


@pytest.mark.parametrize("cycles", [0, 3])
async def test_a_new_leader_leaves_the_candidates_that_it_finds(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, cycles: int
) -> None:
    target = Target("c2", clock, one_waits)
    source = SourceCluster(clock, target)
    async with source.running():
        for name in ("p0", "p1"):
            source.add(name, annotations=GANG)

        await target.server.until(lambda: len(target.server.all(kinds.POD_CHAPERONS)) == 2)

    read, left = GangRooms.read, cycles

    def reads_on(rooms: GangRooms, gang: Gang) -> bool:
        nonlocal left
        left -= 1
        return left < 0 and read(rooms, gang)

    monkeypatch.setattr(GangRooms, "read", reads_on)
    target.reconnect()
    written = source.server.count("patch", kinds.PODS)
    source = SourceCluster(clock, target, server=source.server)
    async with source.running():
        await asyncio.sleep(20)
        assert left < 0
        assert target.asked("delete") == 0
        assert source.server.count("patch", kinds.PODS) == written
        reserves(target, target.candidate("p1"))
        await source.until_bound("p0", "p1")
        assert target.asked("create") == 2


def one_waits(target: Target, candidate: Object) -> None:
    """Reserve a place for one pod of the gang, and none for the other."""
    answer = reserves if objects.name(candidate) == names.chaperon("p0", "p0") else is_silent
    answer(target, candidate)
