"""Looks at the clusters of a workload: how many pods each could take, and since when. No I/O.

The scheduler's filters and what targets have free say it, where pods have left placeholders these.
What has turned out wrong counts as well: a cluster where pods waited although there seemed to be
room is not believed for a while. What to do then, `vnode.planning` decides.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from vnode.api import objects
from vnode.api.durations import TICK
from vnode.api.owners import owner_key
from vnode.placement.moves.demands import WantedMoves
from vnode.placement.moves.move import Move
from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.placement.moves.workload_now import WorkloadNow
from vnode.planning.move_policy import TRIED_AGAIN, FailbackMode, Openings
from vnode.planning.move_state import Decision, PlannedEviction, WorkloadState
from vnode.planning.moving import decide
from vnode.planning.moving_together import decide_together
from vnode.planning.pod_size import PodSize
from vnode.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class NextMoves:
    """What to do next about a workload."""

    decision: Decision
    move: Move | None
    """The move to begin now; None if pods stay where they are."""
    wait: float | None
    """In how many seconds there may be more room; None if an event tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyClusters:
    """The clusters of a workload's policy at one moment."""

    moves: WorkloadMoves
    wanted: WantedMoves
    workload_now: WorkloadNow
    snapshot: Snapshot
    size: PodSize
    """Of a pod of the workload."""
    now: float
    """Of the monotonic clock."""
    wall: datetime
    """The same moment."""

    def decide(self, placeholders: Openings | None) -> NextMoves:
        """Decide what is next; `placeholders` is that of `Mover`."""
        room, wait = self._lasting_room(placeholders)
        moves, now, policy = self.moves, self.workload_now, self.moves.policy
        shares, caps = now.shares, {}
        if policy.is_together:
            shares = tuple(share for share in shares if share.node in now.able)

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
        # Pods are evicted one by one: after each the workload is looked at again.
        found = (decide_together if policy.is_together else decide)(state, self.wanted.reason, 1)
        if found.full:
            names = ", ".join(self.snapshot.target_name(node) for node in found.full)
            found = replace(found, why=f"{found.why} in {names}")

        return NextMoves(found, self._move(found.evictions[0]) if found.evictions else None, wait)

    def _lasting_room(self, placeholders: Openings | None) -> tuple[dict[str, int], float | None]:
        """Return the room that counts for the reason, and in how many seconds there may be more.

        Where pods have waited in vain lately, though there seemed to be room, there is none.
        """
        moves, probed, wall = self.moves, self.moves.probed, self.wall.timestamp()
        ages = {n: wall - at for n, at in moves.workload.waited.saturated(self.size).items()}
        room, waited = self._room(self.workload_now.free), {n: self.now - ages[n] for n in ages}
        in_vain = probed.observe(room, self.now, self.workload_now.moves.targets, waited)
        if not self.wanted.reason.needs_lasting_room:
            lately = {node for node in in_vain if ages[node] < moves.policy.overflow.after}
            return {node: count for node, count in room.items() if node not in lately}, None

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

    def _move(self, eviction: PlannedEviction) -> Move:
        """Return the move that begins with an eviction."""
        members, target = self.moves.workload.members, eviction.target
        pod = members[eviction.uid].pod
        tiers = {share.node: share.tier for share in self.workload_now.shares}
        return Move(
            eviction.uid,
            objects.key(pod),
            target,
            self.wanted.reason,
            owner_key(pod),
            frozenset(n for n, tier in tiers.items() if tier > tiers.get(target, tier)),
            self.workload_now.fits[target],
            self._why(eviction),
        )

    def _why(self, eviction: PlannedEviction) -> str:
        """Return why a pod is moved, for people."""
        policy, name = self.moves.policy, self.snapshot.target_name
        whole = " for all" if policy.is_together else ""
        return (
            f"moved by {policy.name} ({self.wanted.reason.value}): {eviction.there} of "
            f"{eviction.replicas} run in {name(eviction.source)}, planned {eviction.planned}; "
            f"{name(eviction.target)} has room{whole}"
        )

    def _room(self, nodes: Collection[str], least: int = 0) -> dict[str, int]:
        """Return how many more pods could start on these nodes: at least that many.

        There is none where another one waits, unless that is larger. What reports say is free may
        not be without the pods that are on their way there, or came a moment ago.
        """
        workload, mine = self.moves.workload, self.workload_now.moves
        going = self.moves.taken.taken(self.now)
        if self.moves.policy.is_together:
            going -= mine.taken
        else:
            new = (m.aim for m in workload.pending() if m.aim and m.uid not in mine.replacements)
            going.update(new)

        found = {
            node: max(least, count - going[node])
            for node, count in self.workload_now.fits.items()
            if node in nodes and math.isinf(workload.waited.since(node, self.size))
        }
        return {node: count for node, count in found.items() if count > 0}

    def _asked(self, room: Mapping[str, int], placeholders: Openings) -> dict[str, int]:
        """Return the room where placeholders say since when there is some.

        There the targets themselves say so, whatever they have said of what is free. Of a place
        that a pod is being given, or got a moment ago, placeholders do not know yet: they hold
        none, so that one place is enough for all of them to say so.
        """
        workload, taken = self.moves.workload, self.moves.taken.targets(self.now)
        found = {}
        for node, count in self._room(self.workload_now.able, least=1).items():
            if workload.placeholders[node]:
                at = placeholders.refuted(workload.key, node)
                # Those that say so were not tried since another one had no place.
                is_doubtful = at is not None and self.now - at < TRIED_AGAIN - TICK
                found[node] = room.get(node, 0) if node in taken or is_doubtful else count

        return found
