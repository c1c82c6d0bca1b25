"""PostFilter: leave candidates where only room is missing.

A target without room can make some, by growing or by preemption, but only for a pod that its own
scheduler sees. So if no target passed, a bounded number of those that are merely full are given a
candidate. Which ones is drawn by the pod's UID: the same pod keeps to the same targets, so that
their autoscalers have the time they need, and many pods reach all targets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import WakeOn
from vnode.scheduling.plugin import PostFilterPlugin
from vnode.scheduling.snapshot import Snapshot
from vnode.scheduling.status import SUCCESS, Code, Status


class CandidateProbeArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of CandidateProbe."""

    candidates: int = 1
    """How many targets at most get a candidate in spite of their no; 0 for none."""
    plugins: tuple[str, ...] = ("NodeResourcesFit",)
    """Whose no (if UNSCHEDULABLE) a target may overcome; such plugins must filter last."""


class CandidateProbe(PostFilterPlugin):
    """Scale from zero, and preemption, in targets."""

    NAME = "CandidateProbe"
    Args = CandidateProbeArgs

    def events_to_register(self) -> list[WakeOn]:
        """It rejects nothing."""
        return []

    def post_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot, statuses: Mapping[str, Status]
    ) -> tuple[Sequence[str], Status]:
        """The nominated nodes, if any."""
        full = [
            name
            for name, said in statuses.items()
            if said.code is Code.UNSCHEDULABLE and said.plugin in self.args.plugins
        ]
        uid = objects.uid(pod)
        full.sort(key=lambda name: hashlib.sha256(f"{uid}/{name}".encode()).digest())
        chosen = full[: max(0, self.args.candidates)]
        return chosen, SUCCESS if chosen else status.unschedulable("no target to probe")
