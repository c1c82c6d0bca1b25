"""The members of one gang, and how many of them are in each state, without going through them.

A gang may have thousands, and each that is created, reserved, bound or allowed asks how many others
are as far. So the counts are kept as members change, and an answer costs the same for any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from vnode.api import objects, owners
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey
from vnode.api.shape import Shape
from vnode.gangs.membership import Membership

V = TypeVar("V")


@dataclass(slots=True)
class GangMember:
    """A pod of a gang, as the API server has it."""

    pod: Object
    says: Membership
    node: str
    is_gated: bool
    is_over: bool
    """It has finished, or is being deleted."""
    is_ending: bool
    has_succeeded: bool = False
    controller: OwnerKey | None = None
    """The object that makes it anew."""
    shape: Shape | None = None
    """What it asks of a node, once somebody has read that."""

    @property
    def is_waiting(self) -> bool:
        """Whether it is to get a place."""
        return not (self.node or self.is_over or self.is_gated)

    @property
    def is_bound(self) -> bool:
        """Whether it has a node, and is not over."""
        return bool(self.node) and not self.is_over

    def stands_as(self, other: GangMember) -> bool:
        """Tell whether nothing is different that matters to the others."""
        return (
            self.node == other.node
            and self.is_gated == other.is_gated
            and self.is_over == other.is_over
            and self.is_ending == other.is_ending
            and self.says == other.says
        )


def member(pod: Object, says: Membership) -> GangMember:
    """Return the member that a pod is."""
    is_ending = objects.is_terminating(pod)
    return GangMember(
        pod,
        says,
        objects.node_name(pod),
        bool(objects.spec(pod).get("schedulingGates")),
        is_ending or objects.is_finished(pod),
        is_ending,
        objects.status(pod).get("phase") == "Succeeded" and not is_ending,
        owners.owner_key(pod),
    )


class GangMembers(Mapping[str, GangMember]):
    """Members by UID; `put`, `remove` and `reserve` alone change them.

    After each of these, every index below has exactly the members that it names, and every counter
    the values of exactly those that are not over: so nobody has to go through all.
    """

    def __init__(self) -> None:
        self._all: dict[str, GangMember] = {}
        self._waiting: dict[str, GangMember] = {}  # is_waiting
        self._bound: dict[str, GangMember] = {}  # is_bound
        self._reserved: set[str] = set()  # for which their target keeps a place
        self._placed: set[str] = set()  # on a node, with a place there or at their end
        # Of a gang these have few values: its pods are alike, and are made in bursts.
        self._nodes: Counter[str] = Counter()  # of bound ones
        self._priorities: Counter[int] = Counter()
        self._created: Counter[str] = Counter()
        self._minimums: Counter[int] = Counter()
        self._controllers: Counter[OwnerKey | None] = Counter()
        self._succeeded: Counter[OwnerKey] = Counter()  # by controller, those that have

    def __getitem__(self, uid: str) -> GangMember:
        return self._all[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def waiting(self) -> Mapping[str, GangMember]:
        """Those that are to get a place."""
        return self._waiting

    @property
    def bound(self) -> Mapping[str, GangMember]:
        """Those that are bound and not over."""
        return self._bound

    @property
    def placed(self) -> int:
        """How many are bound and have a place, or have run to their end."""
        return len(self._placed)

    @property
    def present(self) -> int:
        """How many need no more than a place."""
        return len(self._waiting) + len(self._bound)

    @property
    def succeeded(self) -> int:
        """How many have done their work, of the controllers of those that are not over."""
        if not self._succeeded:
            return 0

        return sum(n for owner, n in self._succeeded.items() if owner in self._controllers)

    @property
    def minimums(self) -> list[int]:
        """All that members say of how many start together, in order."""
        return sorted(self._minimums)

    @property
    def node(self) -> str:
        """The node where most are bound; "" if none is."""
        nodes = self._nodes
        return min(nodes, key=lambda node: (-nodes[node], node)) if nodes else ""

    @property
    def priority(self) -> int:
        """The highest priority of those that are not over."""
        return max(self._priorities, default=0)

    @property
    def since(self) -> str:
        """When the oldest of them was created."""
        return min(self._created, default="")

    def put(self, uid: str, present: GangMember) -> GangMember | None:
        """Take a member as it is now; return what it was before."""
        before = self._all.get(uid)
        if before is not None:
            self._count(before, -1)

        self._all[uid] = present
        self._count(present, 1)
        _index(self._waiting, uid, present, is_in=present.is_waiting)
        _index(self._bound, uid, present, is_in=present.is_bound)
        self._judge(uid)
        return before

    def remove(self, uid: str) -> None:
        """Drop a member."""
        self._count(self._all.pop(uid), -1)
        self._waiting.pop(uid, None)
        self._bound.pop(uid, None)
        self._reserved.discard(uid)
        self._placed.discard(uid)

    def reserve(self, uid: str, *, reserved: bool) -> bool:
        """Note whether a target keeps a place for a member; return whether that is new."""
        if reserved == (uid in self._reserved):
            return False

        if reserved:
            self._reserved.add(uid)
        else:
            self._reserved.discard(uid)

        self._judge(uid)
        return True

    def _judge(self, uid: str) -> None:
        each = self._all[uid]
        is_placed = each.node and not each.is_ending and (each.is_over or uid in self._reserved)
        if is_placed:
            self._placed.add(uid)
        else:
            self._placed.discard(uid)

    def _count(self, each: GangMember, by: int) -> None:
        if each.has_succeeded and each.controller:
            _add(self._succeeded, each.controller, by)

        if each.is_over:
            return

        _add(self._controllers, each.controller, by)
        _add(self._priorities, objects.priority(each.pod), by)
        _add(self._created, objects.created(each.pod), by)
        if each.says.minimum is not None:
            _add(self._minimums, each.says.minimum, by)

        if each.node:
            _add(self._nodes, each.node, by)


def _index(index: dict[str, GangMember], uid: str, each: GangMember, *, is_in: bool) -> None:
    if is_in:
        index[uid] = each
    else:
        index.pop(uid, None)


def _add(counter: Counter[V], value: V, by: int) -> None:
    """Count a value; one that nobody has any more is no key."""
    counter[value] += by
    if not counter[value]:
        del counter[value]
