"""One gang: its members, the target that is tried for it, and who has a place there.

All of it is in memory. What must outlive the agent is on the objects: where members are bound, and
which of their candidates may run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.shape import Shape
from vnode.gangs.membership import GangKey, Membership
from vnode.gangs.pod_groups import GroupStanding


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
    shape: Shape | None = None
    """What it asks of a node, once somebody has read that."""

    @property
    def is_live(self) -> bool:
        """Whether it runs, or is to run."""
        return not self.is_over

    @property
    def is_waiting(self) -> bool:
        """Whether it is to get a place."""
        return not (self.node or self.is_over or self.is_gated)

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
    )


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A target that was tried in vain: why, how often in a row, and until when it is left alone."""

    reason: str
    count: int
    until: float


@dataclass(slots=True, eq=False)
class Gang:
    """What is known of one gang; moments are those of the monotonic clock."""

    key: GangKey
    members: dict[str, GangMember] = field(default_factory=dict)
    """By UID."""
    target: str = ""
    """The node that is tried, or was chosen; "" for none. Where members are bound counts before."""
    ready: set[str] = field(default_factory=set)
    """UIDs of those that have a place there, and wait for the others."""
    refused: dict[str, str] = field(default_factory=dict)
    """UID -> why it has no place there."""
    grows_until: float = 0.0
    """Until when it is waited for that the target grows."""
    is_committed: bool = False
    """Enough have a place: they are bound."""
    reserved: set[str] = field(default_factory=set)
    """UIDs of those that are bound, and for which the target keeps a place."""
    is_started: bool = False
    """Enough were bound, each with a place: from then on each one counts for itself."""
    vain: dict[str, FailedTry] = field(default_factory=dict)
    """By node."""
    complete_since: float | None = None
    """Since when all are there that it takes."""
    unfinished_since: float | None = None
    """Since when some are bound, and too few to run."""
    best_node: str = ""
    """The node with room for most of them when a target was last looked for; "" for none."""
    version: int = 0
    """Another one after each change of members."""
    said: tuple[int, GroupStanding] | None = None
    """The version of which that is what its pods say of its minimum."""
    told: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Node -> why it has no room, as users were told, and until when that is not told anew."""
    is_released: bool = False
    """Those that were held were let into the queue."""

    def live(self) -> dict[str, GangMember]:
        """Return those that run, or are to run."""
        return {uid: each for uid, each in self.members.items() if each.is_live}

    def waiting(self) -> dict[str, GangMember]:
        """Return those that are to get a place, in the order in which they were created."""
        return {uid: each for uid, each in self.members.items() if each.is_waiting}

    def bound(self) -> dict[str, GangMember]:
        """Return those that are bound and not over."""
        return {uid: each for uid, each in self.members.items() if each.node and each.is_live}

    def placed(self) -> int:
        """Count those that are bound and have a place, or have run to their end."""
        return sum(
            1
            for uid, each in self.members.items()
            if each.node and not each.is_ending and (uid in self.reserved or each.is_over)
        )

    def present(self) -> int:
        """Count those that need no more than a place."""
        return sum(
            1 for m in self.members.values() if m.is_live and not (m.is_gated and not m.node)
        )

    def place(self) -> str:
        """Return the node where the gang is, or is tried; "" for none."""
        nodes = Counter(each.node for each in self.bound().values())
        return min(nodes, key=lambda node: (-nodes[node], node)) if nodes else self.target

    def priority(self) -> int:
        """Return the highest priority of its pods."""
        return max((objects.priority(each.pod) for each in self.live().values()), default=0)

    def since(self) -> str:
        """Return when the oldest of its pods was created."""
        return min((objects.created(each.pod) for each in self.live().values()), default="")

    def leave(self) -> None:
        """Give the target up that is tried."""
        self.target, self.is_committed, self.grows_until = "", False, 0.0
        self.ready.clear()
        self.refused.clear()
