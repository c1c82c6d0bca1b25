"""Counts how many pods of a gang find a place in a target now, as the scheduler's plugins see it.

Each kind of pod in the gang passes the plugins once for each target; then the pods that may go
there are put on its nodes beside what others were promised (`vnode.gangs.room`). What was found
holds until something changes, for all members that ask. All of that is one step of a scheduling
cycle, so that a gang of very many kinds of pods is not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from vnode.api import packing, resources
from vnode.api import shape as shapes
from vnode.api.objects import Object
from vnode.api.packing import PodsOfShape
from vnode.api.shape import Shape
from vnode.gangs import deciding, room
from vnode.gangs.gang import Gang
from vnode.gangs.members import GangMember
from vnode.gangs.room import FreeInTarget, GangRoom
from vnode.scheduling.cache import Cache
from vnode.scheduling.framework import Framework
from vnode.scheduling.snapshot import VirtualNodeInfo

MOST_KINDS: Final = packing.MOST_SHAPES
"""Kinds of pods in a gang."""

_READING: Final = 0.02
"""Seconds of the processor in one cycle in which it is read what pods ask for; each takes a third
of a millisecond, and up to some milliseconds by its constraints."""
_PLUGINS: Final = 8  # rows as which it counts to have a kind of pods pass the plugins
_MOST: Final = 512  # gangs and targets whose room is remembered


class GangRooms:
    """Finds the room of targets for gangs; the last two parameters are those of `Handle`."""

    def __init__(
        self,
        framework: Framework,
        cache: Cache,
        constraints: Callable[[Object], Object | None],
        is_overridden: Callable[[Object, str], bool],
    ) -> None:
        self._framework = framework
        self._cache = cache
        self._constraints = constraints
        self._is_overridden = is_overridden
        self._generation = -1
        self._found: dict[tuple[Gang, int, str], GangRoom] = {}

    def read(self, gang: Gang) -> bool:
        """Read on what members ask for; return whether it is known of all, or too many kinds are.

        Call it again in the next cycle while it is not: a gang may have thousands of members.
        """
        if gang.kinds is not None and gang.kinds[0] == gang.version:
            return True

        begun, kinds = time.thread_time(), dict[str, list[GangMember]]()
        for each in gang.waiting().values():
            if each.shape is None and time.thread_time() - begun > _READING:
                return False

            alike = kinds.setdefault(self._shape(each).key, [])
            alike.append(each)
            each.shape = alike[0].shape  # those of thousands of members take no memory
            if len(kinds) > MOST_KINDS:
                break

        gang.kinds = gang.version, kinds
        return True

    def refusal(self, gang: Gang) -> str:
        """Return why no room is looked for, with the cure; "" if it is."""
        if len(self._kinds(gang)) <= MOST_KINDS:
            return ""

        return (
            f"the pods of gang {gang.key} ask for over {MOST_KINDS} different combinations of "
            f"resources and kinds of nodes: use {MOST_KINDS} at most"
        )

    def cost(self, gang: Gang, node: VirtualNodeInfo) -> int:
        """Return what it takes to find the room on a node, in kinds of pods on rows of nodes."""
        if self._generation == self._cache.generation and (
            (gang, gang.version, node.name) in self._found
        ):
            return 0

        _free, rows = self._cache.reported(node.name)
        count = sum(len(alike.rows) for alike in rows.alike) if rows is not None else 0
        return len(self._kinds(gang)) * (count + _PLUGINS)

    def of(self, gang: Gang, minimum: int, node: VirtualNodeInfo) -> GangRoom:
        """Return the room for a gang, of which none is bound."""
        if self._generation != self._cache.generation or len(self._found) > _MOST:
            self._generation = self._cache.generation
            self._found.clear()

        key = (gang, gang.version, node.name)
        if key not in self._found:
            self._found[key] = self._find(gang, minimum, node)

        return self._found[key]

    def _find(self, gang: Gang, minimum: int, node: VirtualNodeInfo) -> GangRoom:
        waiting, kinds = gang.waiting(), self._kinds(gang)
        target, snapshot = node.virtual.target[1], self._cache.snapshot()
        able, refusals = list[PodsOfShape](), list[str]()
        pods: list[tuple[Object, int]] = []
        for members in kinds.values():
            refused = self._framework.check(members[0].pod, snapshot, node.name)
            if not refused.is_success:
                refusals.append(refused.message)
                continue

            shape = self._shape(members[0])
            shape = shape.only(shape.wanted.keys() - node.virtual.unlisted)
            able.append(PodsOfShape(shape, len(members)))
            pods.append((members[0].pod, len(members)))

        count = sum(each.count for each in able)
        if count < minimum:
            return GangRoom(deciding.counted(count, len(waiting), target, refusals[0]), count)

        if any(self._is_overridden(pod, node.name) for pod, _ in pods):
            return GangRoom(place=count, is_known=False)  # what they ask for there is not known

        if lacking := self._cache.quotas.lack(pods, node.name):
            return GangRoom(deciding.counted(0, len(waiting), target, lacking))

        free, rows = self._cache.reported(node.name)
        promised = self._cache.promised(node.name)
        others = [wanted for uid, wanted in promised.items() if uid not in gang.members]
        there = FreeInTarget(target, free, rows, packing.by_shape(others), node.virtual.pools)
        return room.find(able, minimum, there)

    def _kinds(self, gang: Gang) -> Mapping[str, list[GangMember]]:
        """Return the members that wait, by what they ask for; all was read in this cycle."""
        while not self.read(gang):
            pass

        assert gang.kinds is not None
        return gang.kinds[1]

    def _shape(self, each: GangMember) -> Shape:
        """Return what a member asks of a node; without its constraints if they are not known."""
        if each.shape is None:
            requests = resources.pod_requests(each.pod)
            each.shape = shapes.read(requests, self._constraints(each.pod)) or Shape(requests)
            self._cache.prepare(each.pod)  # all are promised their room in one step

        return each.shape
