"""Looks at the clusters of a workload: how many pods each could take, and since when. No I/O.

The scheduler's filters and what targets have free say it, where pods have left placeholders these.
What has turned out wrong counts as well: a cluster where pods waited although there seemed to be
room is not believed for a while. What to do then, `vnode.planning` decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.durations import TICK
from vnode.api.owners import owner_key
from vnode.placement.moves.under_way import Move, MovesUnderWay
from vnode.placement.moves.workload_moves import WorkloadMoves, WorkloadNow
from vnode.planning import weighing
from vnode.planning.move_policy import TRIED_AGAIN, FailbackMode, Openings
from vnode.planning.move_reasons import MoveReason
from vnode.planning.move_state import Decision, PlannedEviction, WorkloadState
from vnode.planning.moving import decide
from vnode.planning.moving_together import decide_together
from vnode.planning.pod_size import PodSize
from vnode.planning.seats import Share
from vnode.scheduling.snapshot import Snapshot

UNBOUNDED: Final = 1000
"""Pods that a cluster has room for if it does not say what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyClusters:
    """The clusters of a workload's policy at one moment."""

    moves: WorkloadMoves
    reason: MoveReason
    """Why pods of it are to be moved."""
    workload_now: WorkloadNow
    others: Sequence[MovesUnderWay]
    """The moves of other workloads."""
    snapshot: Snapshot
    shares: tuple[Share, ...]
    """Of those that can take its pods, given room."""
    able: frozenset[str]
    """Those that can take its pods, given room; without those where moves were in vain."""
    free: frozenset[str]
    """Those that have room as well, by the filters."""
    fits: Mapping[str, int]
    """Cluster -> such pods for which it has room, by what it says is free."""
    size: PodSize
    """Of such a pod."""
    now: float
    """Of the monotonic clock."""
    wall: datetime
    """The same moment."""

    def decide(self, placeholders: Openings | None) -> tuple[Decision, float | None]:
        """Return the next steps, and in how many seconds there may be more room.

        `placeholders` is that of `Mover`.
        """
        room, wait = self._lasting_room(placeholders)
        moves, now, policy = self.moves, self.workload_now, self.moves.policy
        shares, caps = self.shares, {}
        if policy.is_together:
            shares = tuple(share for share in shares if share.node in self.able)

        if policy.drains:
            caps = {node.name: policy.drained_to(node) for node in self.snapshot.nodes}

        state = WorkloadState(
            replicas=now.replicas,
            seats=moves.workload.seats(shares),
            included=moves.clusters,
            room=room,
            limit=now.limit,
            overflows=policy.overflow.max_candidates > 1,
            under_way=now.moves.count,
            unreplaced=now.unreplaced,
            missing=now.moves.missing,
            caps={node: cap for node, cap in caps.items() if cap is not None},
            destination=moves.workload.destination,
        )
        return (decide_together if policy.is_together else decide)(state, self.reason), wait

    def _lasting_room(self, placeholders: Openings | None) -> tuple[dict[str, int], float | None]:
        """Return the room that counts for the reason, and in how many seconds there may be more."""
        moves, probed = self.moves, self.moves.probed
        room = self._room(self.free)
        probed.observe(room, self.now, self.workload_now.moves.targets)
        in_vain = self._in_vain()
        if not self.reason.needs_lasting_room:
            return {node: count for node, count in room.items() if node not in in_vain}, None

        failback, key = moves.policy.failback, moves.workload.key
        asked: dict[str, int] = {}
        if placeholders is not None and failback.mode is FailbackMode.PLACEHOLDER:
            asked = self._asked(room, placeholders)

        found, waits = {}, []
        for node, count in (room | asked).items():
            since, is_asked = probed.since(node), node in asked
            if placeholders is not None and is_asked:
                since = placeholders.since(key, node)

            if since is None:
                continue

            left = since + failback.stable_after(is_asked=is_asked) - self.now
            if left >= TICK:
                waits.append(left)
            else:
                found[node] = count

        return found, min(waits, default=None)

    def move(self, eviction: PlannedEviction) -> Move:
        """Return the move that begins with an eviction."""
        members, target = self.moves.workload.members, eviction.target
        pod = members[eviction.uid].pod
        tiers = {share.node: share.tier for share in self.shares}
        return Move(
            eviction.uid,
            objects.key(pod),
            target,
            frozenset(members),
            self.reason,
            owner_key(pod),
            frozenset(n for n, tier in tiers.items() if tier > tiers.get(target, tier)),
            self.fits[target],
        )

    def _room(self, nodes: Collection[str], least: int = 0) -> dict[str, int]:
        """Return how many more pods could start on these nodes: at least that many.

        There is none where another one waits, unless that is larger. What reports say is free may
        not be without the pods that are on their way there, or came a moment ago.
        """
        workload, going = self.moves.workload, Counter[str]()
        if not self.moves.policy.is_together:
            mine = self.workload_now.moves
            new = (m.aim for m in workload.pending() if m.aim and m.uid not in mine.replacements)
            going = mine.taken + Counter(new)

        for each in self.others:
            going += each.taken(self.now)

        found = {
            node: max(least, count - going[node])
            for node, count in self.fits.items()
            if node in nodes and math.isinf(workload.waiting_since(node, self.size))
        }
        return {node: count for node, count in found.items() if count > 0}

    def _asked(self, room: Mapping[str, int], placeholders: Openings) -> dict[str, int]:
        """Return the room where placeholders say since when there is some.

        There the targets themselves say so, whatever they have said of what is free. Of a place
        that a pod is being given, or got a moment ago, placeholders do not know yet: they hold
        none, so that one place is enough for all of them to say so.
        """
        workload, taken = self.moves.workload, self.workload_now.moves.targets
        taken = taken.union(*(each.targets(self.now) for each in self.others))
        found = {}
        for node, count in self._room(self.able, least=1).items():
            if workload.placeholders[node]:
                at = placeholders.refuted(workload.key, node)
                # Those that say so were not tried since another one had no place.
                is_doubtful = at is not None and self.now - at < TRIED_AGAIN - TICK
                found[node] = room.get(node, 0) if node in taken or is_doubtful else count

        return found

    def _in_vain(self) -> set[str]:
        """Return the nodes where pods have waited in vain lately, though there seemed to be room.

        For failback the time begins anew at such a moment.
        """
        after, found = self.moves.policy.overflow.after, set()
        for node, moment in self.moves.workload.saturated(self.size).items():
            age = self.wall.timestamp() - moment
            if self.moves.probed.begin_at(node, self.now - age) and age < after:
                found.add(node)

        return found


def look(
    moves: WorkloadMoves,
    reason: MoveReason,
    others: Sequence[MovesUnderWay],
    snapshot: Snapshot,
    takers: tuple[frozenset[str], frozenset[str]],
    rooms: Mapping[str, int | None],
    size: PodSize,
    now: float,
    wall: datetime,
) -> PolicyClusters:
    """Look at the clusters for a reason.

    `takers` are those that can take pods of the workload, and those that do now.

    `rooms` says how many each has room for, None if that is not known. They weigh what they did
    when a pod was planned. If none was since its pods are counted, they are weighed now, and the
    weights are kept.
    """
    policy, workload = moves.policy, moves.workload
    nodes, (able, free) = snapshot.nodes, takers
    if policy.by_capacity and workload.weighting is None:
        workload.weigh(weighing.weigh(policy.shares(nodes), rooms, workload.bound))

    shares = policy.shares(nodes, workload.weights)
    fits = {node: UNBOUNDED if count is None else count for node, count in rooms.items()}
    with_room = {node: fits[node] for node in free}
    included = frozenset(share.node for share in shares)
    workload_now = moves.look(reason, included, with_room, now, wall)
    usable = included - workload_now.moves.in_backoff
    return PolicyClusters(
        moves=moves,
        reason=reason,
        workload_now=workload_now,
        others=others,
        snapshot=snapshot,
        shares=tuple(share for share in shares if share.node in able),
        able=able & usable,
        free=free & usable,
        fits=fits,
        size=size,
        now=now,
        wall=wall,
    )
