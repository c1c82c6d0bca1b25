"""One gang: its members, the target that is tried for it, and who has a place there.

All of it is in memory. What must outlive the agent is on the objects: where members are bound, and
which of their candidates may run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vnode.gangs.members import GangMember, GangMembers
from vnode.gangs.membership import GangKey
from vnode.gangs.pod_groups import GroupStanding


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
    members: GangMembers = field(default_factory=GangMembers)
    target: str = ""
    """The node that is tried, or was chosen; "" for none. Where members are bound counts before."""
    # Of members that are waiting, and none is in both: `next_step` counts on it.
    ready: set[str] = field(default_factory=set)
    """UIDs of those that have a place there, and wait for the others."""
    refused: dict[str, str] = field(default_factory=dict)
    """UID -> why it has no place there."""
    grows_until: float = 0.0
    """Until when it is waited for that the target grows."""
    is_committed: bool = False
    """Enough have a place: they are bound."""
    is_started: bool = False
    """Enough were bound, each with a place: from then on each one counts for itself."""
    is_resumed: bool = False
    """It had started before this agent knew of it."""
    vain: dict[str, FailedTry] = field(default_factory=dict)
    """By node."""
    leaving: dict[str, float] = field(default_factory=dict)
    """Node -> until when it is known that candidates of an earlier try are still going there."""
    complete_since: float | None = None
    """Since when all are there that it takes."""
    short_since: float | None = None
    """Since when too few are left, and would be enough with those that have done their work."""
    is_spent: bool = False
    """Those that are left start without the others."""
    unplaced: str = ""
    """Why no target took it when one was last looked for, as its pods say."""
    unfinished_since: float | None = None
    """Since when some are bound, and too few to run."""
    best_node: str = ""
    """The node with room for most of them when a target was last looked for; "" for none."""
    looked_at: str = ""
    """The node up to which targets were looked at last, if not all were; "" if so."""
    version: int = 0
    """Another one after each change of members, and of what they ask for."""
    kinds: tuple[int, Mapping[str, list[GangMember]]] | None = None
    """The version of which these are the members that wait, by what they ask for."""
    said: tuple[int, GroupStanding] | None = None
    """The version of which that is what its pods say of its minimum."""
    told: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Node -> why it has no room, as users were told, and until when that is not told anew."""
    is_released: bool = False
    """Those that were held were let into the queue."""

    def waiting(self) -> Mapping[str, GangMember]:
        """Return those that are to get a place."""
        return self.members.waiting

    def bound(self) -> Mapping[str, GangMember]:
        """Return those that are bound and not over."""
        return self.members.bound

    def place(self) -> str:
        """Return the node where the gang is, or is tried; "" for none."""
        return self.members.node or self.target

    def has_place(self, uid: str) -> bool:
        """Note that a member has a place in the target that is tried, if it waits for one."""
        if uid not in self.members.waiting:
            return False

        self.ready.add(uid)
        self.refused.pop(uid, None)
        return True

    def has_none(self, uid: str, why: str) -> None:
        """Note that a member has no place there, if it waits for one."""
        self.ready.discard(uid)
        if uid in self.members.waiting:
            self.refused[uid] = why

    def forget(self, uid: str) -> None:
        """Note that a member waits for no place any more."""
        self.ready.discard(uid)
        self.refused.pop(uid, None)

    def leave(self) -> None:
        """Give the target up that is tried."""
        self.target, self.is_committed, self.grows_until = "", False, 0.0
        self.ready.clear()
        self.refused.clear()
