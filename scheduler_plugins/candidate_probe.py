"""PostFilter: leave candidates where only room is missing.

A target without room can make some, by growing or by preemption, but only for a pod that its own
scheduler sees. So if no target passed, or those that did have all rejected the pod, a bounded
number of those that are merely full are given a candidate. Each attempt asks others than those
before it, so that the one target that can make room is found; among equals the pod's UID draws
lots, so that many pods reach all targets at once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint
from vnode.scheduling.plugin import PostFilterPlugin
from vnode.scheduling.snapshot import Snapshot
from vnode.scheduling.status import SUCCESS, Code, Status


class CandidateProbeArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of CandidateProbe."""

    candidates: int = 1
    """How many targets get a candidate at one attempt in spite of their no; 0 for none."""
    plugins: tuple[str, ...] = ("NodeResourcesFit",)
    """Whose no (if UNSCHEDULABLE) a target may overcome; such plugins must filter last."""


class CandidateProbe(PostFilterPlugin):
    """Scale from zero, and preemption, in targets."""

    NAME = "CandidateProbe"
    Args = CandidateProbeArgs

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """It rejects nothing."""
        return []

    def overcomes(self) -> Collection[str]:
        """A target that reserves a place for such a candidate has overcome the no."""
        return tuple(self.args.plugins)

    def post_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot, statuses: Mapping[str, Status]
    ) -> tuple[Sequence[str], Status]:
        """Those never asked before, and then those asked longest ago."""
        full = [
            name
            for name, said in statuses.items()
            if said.code is Code.UNSCHEDULABLE and said.plugin in self.args.plugins
        ]
        uid = objects.uid(pod)

        def turn(name: str) -> tuple[float, bytes]:
            lot = hashlib.sha256(f"{uid}/{name}".encode()).digest()
            return state.asked.get(name, -math.inf), lot

        full.sort(key=turn)
        chosen = full[: max(0, self.args.candidates)]
        return chosen, SUCCESS if chosen else status.unschedulable("no target to probe")
