"""Filter and Reserve: pods that name the same ResourceClaim go to one target.

Its devices are there: in another target its copy would get others. Which pods use a claim is known
from those that are bound (`vnode.scheduling.claim_users`), and from Reserve on.
"""

from __future__ import annotations

from dataclasses import dataclass

from vnode.api import constraint_size, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.scheduling import events, status
from vnode.scheduling.claim_users import ClaimUsers, claims_of
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind, EventReading
from vnode.scheduling.plugin import FilterPlugin, PreFilterPlugin, ReservePlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status


@dataclass(frozen=True, slots=True)
class _NamedClaims(EventReading):
    """The claims of a pod; those of several pods are compared as sets."""

    claims: frozenset[str]
    cost: int = 1

    def is_helped_by(self, other: _NamedClaims) -> bool:
        return not self.claims.isdisjoint(other.claims)


class SharedClaims(PreFilterPlugin, FilterPlugin, ReservePlugin):
    """Keeps a pod from targets other than the one in which its claims are used."""

    NAME = "SharedClaims"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which nobody may use a claim any more."""

        def read(pod: Object) -> EventReading:
            return _NamedClaims(frozenset(claims_of(pod)))

        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            *events.of_pods(events.own_namespace, read),
        ]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Skip pods that name no claim; reject one that names too many to compare."""
        claims = claims_of(pod)
        if not claims:
            return SKIP

        try:
            constraint_size.check(claims, (), "spec.resourceClaims")
        except ConfigError as error:
            return status.unresolvable(str(error))

        state.write(self.NAME, snapshot)
        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node if a claim is used on another, by its target."""
        snapshot: Snapshot = state.read(self.NAME)
        reasons = [
            f'ResourceClaim "{objects.split_key(claim)[1]}" is used in target '
            f"{snapshot.target_name(other)}"
            for claim, other in snapshot.claim_users.elsewhere(pod, node.name).items()
        ]
        return status.unschedulable(*reasons) if reasons else SUCCESS

    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Settle that the claims are used on this node, unless they are on another by now."""
        users = self._users(state, pod)
        if users is None:
            return SUCCESS

        if users.elsewhere(pod, node_name):
            return status.unschedulable("a ResourceClaim is used in another target by now")

        users.reserve(pod, node_name)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Undo `reserve`."""
        if (users := self._users(state, pod)) is not None:
            users.unreserve(pod)

    def _users(self, state: CycleState, pod: Object) -> ClaimUsers | None:
        """Return who uses claims; None for a pod that names none."""
        if not claims_of(pod):
            return None

        snapshot: Snapshot = state.read(self.NAME)
        return snapshot.claim_users
