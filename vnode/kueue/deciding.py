"""Decides whether a target has room for all pods of a workload at the same time. Pure.

What is told of targets is a moment old, so what others were promised since then counts as taken.
A workload goes into one target as a whole, but where Kueue has given its pods to several by
topology. Of several that have room it gets the fullest: what is large needs the empty ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from vnode.api import packing, resources
from vnode.api.packing import PodsOfShape
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.api.shape import Shape

Wanted: TypeAlias = Mapping[str, int]
"""How many pods of which pod set are to go into one target."""
Placement: TypeAlias = dict[str, dict[str, int]]
"""Pod set -> virtual node -> how many of its pods go there."""

_MOST_TOLD: Final = 10  # targets in a message


class RoomAnswer(Enum):
    """What can be said to a workload."""

    NOW = "now"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class PodsThere:
    """What the pods of one pod set meet in one target."""

    shape: Shape
    """What each asks of a node."""
    refusal: str = ""
    """Why none of them can go there; "" if some could."""
    is_final: bool = False
    """The refusal holds however much room there is."""


@dataclass(frozen=True, slots=True)
class AskedPodSet:
    """A pod set; `places` are sets of virtual nodes with how many pods one of these is to get.

    () without topology: all of them go where the rest of the workload goes.
    """

    name: str
    count: int
    places: tuple[tuple[frozenset[str], int], ...] = ()


@dataclass(frozen=True, slots=True)
class TargetRoom:
    """A target, as far as it matters to one workload."""

    node: str
    """The name of its virtual node."""
    name: str
    """Its own name, for messages."""
    pods: Mapping[str, PodsThere]
    """By pod set."""
    rows: Rows | None = None
    free: Resources | None = None
    """On all nodes together, as last reported; None if that is not known."""
    size: Resources | None = None
    """Of all nodes together; None if that is not known."""
    promised: tuple[PodsOfShape, ...] = ()
    """To others, and not in what was reported."""
    lack: Callable[[Wanted], str] = lambda _wanted: ""
    """Returns what quotas of the target lack for so many pods."""


@dataclass(frozen=True, slots=True)
class RoomDecision:
    """The answer, with the reason for users."""

    answer: RoomAnswer
    message: str
    placement: Placement = field(default_factory=dict)
    is_soon: bool = False
    """There will be room when pods of this cluster have ended that are about to."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    text: str
    is_final: bool = False


def steps(
    asked: Sequence[AskedPodSet], rooms: Iterable[TargetRoom], *, all_known: bool
) -> Iterator[RoomDecision | None]:
    """Yield where a workload can go now, or why it can go nowhere.

    Before that, yield None for each target that has no room, which may take milliseconds. Only if
    all targets are known can it be said that none ever takes it.
    """
    by_node = {room.node: room for room in rooms}
    fixed = _by_topology(asked, by_node)
    free = {each.name: each.count for each in asked if not each.places and each.count}
    refusals: dict[str, _Refusal] = {}
    targets = sorted(by_node.values(), key=lambda room: (_left(room, free), room.name))
    for room in targets if free else [None]:
        wanted = {node: dict(pods) for node, pods in fixed.items()}
        if room is not None:
            wanted[room.node] = {**wanted.get(room.node, {}), **free}

        refused = _first_refusal(wanted, by_node)
        if refused is None:
            yield RoomDecision(RoomAnswer.NOW, _has_room(wanted, by_node), _placement(wanted))
            return

        refusals[room.name if room is not None else ""] = refused
        yield None

    total = sum(each.count for each in asked)
    final = all_known and bool(refusals) and all(each.is_final for each in refusals.values())
    told = [f"{name}: {r.text}" if name else r.text for name, r in sorted(refusals.items())]
    told = [*told[:_MOST_TOLD], *(["..."] if len(told) > _MOST_TOLD else [])]
    when = "no target can ever take" if final else "no target has room now for"
    why = "; ".join(told) or "there is no target"
    yield RoomDecision(
        RoomAnswer.NEVER if final else RoomAnswer.LATER, f"{when} {_pods(total)}: {why}"
    )


def _by_topology(
    asked: Sequence[AskedPodSet], rooms: Mapping[str, TargetRoom]
) -> dict[str, Counter[str]]:
    """Return which pods Kueue has given to which virtual node.

    A domain of several, such as a region, gets them where they fit beside what was given before;
    one without a virtual node is of real nodes, and no business of ours.
    """
    found: dict[str, Counter[str]] = {}
    for each in asked:
        for nodes, count in each.places:
            if there := sorted(nodes & rooms.keys()):
                given = {n: found.get(n, Counter()) + Counter({each.name: count}) for n in there}
                room = next((n for n in there if not _refusal(rooms[n], given[n])), there[0])
                found.setdefault(room, Counter())[each.name] += count

    return found


def _left(room: TargetRoom, wanted: Wanted) -> float:
    """Return the part of a target that is free, of what pods ask for that is the scarcest there."""
    total = _total(room, wanted)
    parts = [
        (room.free or {}).get(name, 0) / room.size[name]
        for name in total
        if room.size and room.size.get(name)
    ]
    return min(parts, default=1.0)


def _first_refusal(
    wanted: Mapping[str, Wanted], rooms: Mapping[str, TargetRoom]
) -> _Refusal | None:
    for node, pods in wanted.items():
        if refused := _refusal(rooms[node], pods):
            return refused

    return None


def _refusal(room: TargetRoom, wanted: Wanted) -> _Refusal | None:
    """Return why a target cannot take so many pods of these pod sets beside what it promised."""
    for pod_set in wanted:
        there = room.pods[pod_set]
        if there.refusal:
            return _Refusal(there.refusal, there.is_final)

    total = _total(room, wanted)
    if room.size is not None and (short := resources.insufficient(total, room.size)):
        has = ", ".join(f"{n} {resources.format_amount(n, room.size.get(n, 0))}" for n in short)
        asked = ", ".join(f"{n} {resources.format_amount(n, total[n])}" for n in short)
        return _Refusal(f"all its nodes have {has} together, not {asked}", is_final=True)

    if lacking := room.lack(wanted):
        return _Refusal(lacking)

    if room.free is None:
        return _Refusal("what it has free is not known yet")

    taken = packing.total(room.promised)
    left = resources.subtract(room.free, taken)
    if short := resources.insufficient(total, left):
        beside = ", beside what others are promised" if _fits_alone(total, room) else ""
        return _Refusal(f"Insufficient {', '.join(short)}{beside}")

    return _no_nodes(room, wanted) if room.rows is not None else None


def _no_nodes(room: TargetRoom, wanted: Wanted) -> _Refusal | None:
    """Return how many pods find no node, though there is enough on all nodes together."""
    rows = room.rows
    assert rows is not None
    told = rows.resources
    asked = [PodsOfShape(room.pods[name].shape.only(told), n) for name, n in wanted.items()]
    promised = [PodsOfShape(each.shape.only(told), each.count) for each in room.promised]
    missing = sum(packing.unplaced(rows, [*promised, *asked]).values())
    if not missing:
        return None

    total = sum(wanted.values())
    beside = ", beside what others are promised" if packing.fits(rows, asked) else ""
    return _Refusal(f"{max(total - missing, 0)} of {_pods(total)} find a node{beside}")


def _fits_alone(total: Resources, room: TargetRoom) -> bool:
    return not resources.insufficient(total, room.free or {})


def _total(room: TargetRoom, wanted: Wanted) -> Resources:
    return packing.total(
        PodsOfShape(room.pods[name].shape, count) for name, count in wanted.items()
    )


def _placement(wanted: Mapping[str, Wanted]) -> Placement:
    found: Placement = {}
    for node, pods in wanted.items():
        for pod_set, count in pods.items():
            found.setdefault(pod_set, {})[node] = count

    return found


def _has_room(wanted: Mapping[str, Wanted], rooms: Mapping[str, TargetRoom]) -> str:
    parts = [
        f"target {rooms[node].name} has room for {_pods(sum(pods.values()))}"
        for node, pods in sorted(wanted.items())
    ]
    return "; ".join(parts) or "none of its pods goes to a target"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
