"""Says what it would cost to preempt for a candidate, and which cost is the least. Pure.

A target's scheduler preempts for any candidate that it cannot place otherwise, and so would those
of several targets for one pod. So a source marks its candidates: one that `ASKS` has its target say
what it would preempt, and no more; the one that is `ALLOWED` preempts. Candidates without a mark
preempt as any pod does.

The room that victims leave may be taken by others. So each chaperon says how often others were
preempted for its pod (`Rounds`), and the source hands that on to the next candidate: after
`MOST_ROUNDS` there is a pause.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from vnode.api import documents, keys, objects
from vnode.api.objects import Object
from vnode.api.priorities import NAME, NEVER, POLICY

ASKS: Final = "asks"
ALLOWED: Final = "allowed"
MOST_PROXIES: Final = 50
"""Delegates among the victims that are named; the rest only counts."""

MOST_ROUNDS: Final = 2
"""How often others may be preempted for one pod before it has to pause."""

PAUSE: Final = timedelta(minutes=10)
"""How long it pauses then; twice as long after each further round."""

_DOUBLED: Final = 10  # times at most
_LOWEST: Final = -(2**31)  # of priorities

_Priority = Annotated[int, msgspec.Meta(ge=_LOWEST, lt=2**31)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Victims(msgspec.Struct, frozen=True):
    """What a target would preempt: the pods of one of its nodes, those with the least harm."""

    pods: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    highest: _Priority
    """The highest priority among them."""
    total: Annotated[int, msgspec.Meta(ge=0, lt=2**62)] = 0
    """The sum of their priorities, each counted from the lowest that there is."""
    violations: _Count = 0
    """How many of them a PodDisruptionBudget of the target protects."""
    proxies: tuple[str, ...] = ()
    """UIDs of the source's own proxies whose delegates are among them."""

    def __str__(self) -> str:
        pods = "1 pod" if self.pods == 1 else f"{self.pods} pods"
        return f"{pods} of priority {self.highest} or lower"

    def harm(self, violations: int = 0) -> tuple[int, int, int, int]:
        """Return what to compare, in kube-scheduler's order; less is better.

        `violations` are those of the source's own PodDisruptionBudgets.
        """
        return self.violations + violations, self.highest, self.total, self.pods


def victims(priorities: Iterable[int], violations: int, proxies: Iterable[str]) -> Victims:
    """Sum up the victims of one node, of which there must be one."""
    each = list(priorities)
    total = sum(priority - _LOWEST for priority in each)
    named = tuple(sorted(proxies)[:MOST_PROXIES])
    return Victims(len(each), max(each), total, violations, named)


def encode(found: Victims) -> str:
    """Return the text for an annotation."""
    return msgspec.json.encode(found).decode()


def read(chaperon: Object) -> Victims | None:
    """Return what the target would preempt for a candidate; None if it does not say so."""
    return documents.read_note(objects.annotations(chaperon).get(keys.VICTIMS), Victims)


def has_new_offer(old: Object | None, new: Object) -> bool:
    """Tell whether a target says what it would preempt for a candidate, and did not before."""
    offer = read(new)
    return offer is not None and (old is None or offer != read(old))


def mark(pod: Object, *, allowed: bool) -> str:
    """Return the mark of a new candidate, "" for a pod that preempts no others.

    A pod without a class is not marked: it has the priority that is meant for most.
    """
    spec = objects.spec(pod)
    if not spec.get(NAME) or spec.get(POLICY) == NEVER:
        return ""

    return ALLOWED if allowed else ASKS


def is_allowed(chaperon: Object) -> bool:
    """Return whether a candidate may preempt."""
    return objects.annotations(chaperon).get(keys.PREEMPTION) == ALLOWED


def is_preempting(chaperon: Object) -> bool:
    """Return whether the target ends others for a candidate, which waits for their place."""
    status = objects.status(chaperon)
    scheduled = objects.condition(chaperon, "PodScheduled") or {}
    return bool(status.get("nominatedNodeName")) and scheduled.get("status") == "False"


class Rounds(msgspec.Struct, frozen=True):
    """How often others were preempted for a pod, and on which node the room was made last."""

    count: _Count = 0
    at: Annotated[int, msgspec.Meta(ge=0, lt=2**40)] = 0
    """When that was last, in seconds since 1970."""
    node: str = ""
    """Where a nominated pod may still keep the room; "" where none does."""

    def may_go_on(self, now: datetime) -> bool:
        """Tell whether others may be preempted for the pod once more."""
        pause = PAUSE.total_seconds() * 2.0 ** min(max(0, self.count - MOST_ROUNDS), _DOUBLED)
        return self.count < MOST_ROUNDS or now.timestamp() - self.at >= pause

    def next(self, node: str, now: datetime) -> Rounds:
        """Return the rounds with one more, on that node."""
        return Rounds(self.count + 1, int(now.timestamp()), node)

    def limited(self, most: int, now: datetime) -> Rounds:
        """Return the rounds as others may have noted them: so many at most, and none to come."""
        return Rounds(min(self.count, most), min(self.at, int(now.timestamp())), self.node)

    def without_node(self) -> Rounds:
        """Return the rounds of a pod for which no room is kept any more."""
        return Rounds(self.count, self.at)

    def encode(self) -> str:
        """Return the text for an annotation."""
        return msgspec.json.encode(self).decode()


NO_ROUNDS: Final = Rounds()


def rounds(chaperon: Object) -> Rounds:
    """Return how often others were preempted for the pod of a chaperon, as far as it says so."""
    noted = objects.annotations(chaperon).get(keys.PREEMPTED)
    return documents.read_note(noted, Rounds) or NO_ROUNDS


def is_over(chaperon: Object, pod: Object) -> bool:
    """Tell whether no room need be kept for a delegate: it has a node, or waits for none."""
    nominated = objects.status(pod).get("nominatedNodeName")
    was_nominated = objects.status(chaperon).get("nominatedNodeName")
    return bool(objects.node_name(pod)) or (bool(was_nominated) and not nominated)
