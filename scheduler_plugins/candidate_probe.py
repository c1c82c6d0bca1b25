"""PostFilter: leave candidates where only free resources are missing.

A target without free resources can make some, by growing or by preemption, but only for a pod that
its own scheduler sees. So if no target passed, or those that did have all rejected the pod, a
bounded number of the merely full targets get a candidate. Each attempt asks others than those
before it, so that the one target that can make room is found; among equals a hash with the pod's
UID decides, so that many pods reach all targets at once.
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
    """How many targets that were rejected get a candidate at one attempt; 0 for none."""
    plugins: tuple[str, ...] = ("NodeResourcesFit",)
    """Plugins whose UNSCHEDULABLE a target may overrule; they filter after the others."""


class CandidateProbe(PostFilterPlugin):
    """Lets targets scale from zero, or preempt, for a pod that fits nowhere."""

    NAME = "CandidateProbe"
    Args = CandidateProbeArgs

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return no events, since it rejects nothing."""
        return []

    def overcomes(self) -> Collection[str]:
        """Return the configured plugins: targets that reserve a place overrule their rejections."""
        return tuple(self.args.plugins)

    def post_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot, statuses: Mapping[str, Status]
    ) -> tuple[Sequence[str], Status]:
        """Choose full targets: those never asked before, and then those asked longest ago.

        Among equals those come first that name a node pool which may grow for the pod.
        """
        full = [
            name
            for name, rejection in statuses.items()
            if rejection.code is Code.UNSCHEDULABLE and rejection.plugin in self.args.plugins
        ]
        uid = objects.uid(pod)

        def turn(name: str) -> tuple[float, bool, bytes]:
            lot = hashlib.sha256(f"{uid}/{name}".encode()).digest()
            return state.asked.get(name, -math.inf), name not in state.grows, lot

        full.sort(key=turn)
        chosen = full[: max(0, self.args.candidates)]
        return chosen, SUCCESS if chosen else status.unschedulable("no target to probe")
