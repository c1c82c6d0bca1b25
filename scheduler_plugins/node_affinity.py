"""Filter by nodeSelector and required node affinity, Score by preferred node affinity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_plugins import normalizing
from vnode.api import constraint_size, objects, selectors
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.selectors import NodeSelector, NodeSelectorTerm, Selector
from vnode.scheduling import diagnosis, status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status

_PREFERRED = "NodeAffinity.preferred"


@dataclass(frozen=True, slots=True)
class Required:
    """A pod's nodeSelector and required node affinity."""

    selector: Selector
    affinity: NodeSelector | None
    """None: any node matches."""

    def matches(self, node: VirtualNodeInfo) -> bool:
        """Return whether the pod may be on the node."""
        if not self.selector.matches(node.labels):
            return False

        return self.affinity is None or selectors.matches_node(
            self.affinity, node.labels, node.name
        )


def required(pod: Object) -> Required | None:
    """Return what the pod requires, None if nothing. ConfigError if it cannot be read."""
    selector = objects.spec(pod).get("nodeSelector") or {}
    node_affinity = _node_affinity(pod)
    affinity = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    constraint_size.check(
        (affinity or {}).get("nodeSelectorTerms") or (),
        [selector, node_affinity],
        "spec.affinity.nodeAffinity",
    )
    if not selector and affinity is None:
        return None

    terms = None if affinity is None else selectors.from_node_selector(affinity)
    return Required(selectors.from_labels(selector), terms)


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Matches the labels of virtual nodes: those that all nodes of their target share."""

    NAME = "NodeAffinity"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which a node's labels may match."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.NODE_LABELS),
        ]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Compile what the pod requires."""
        try:
            requirement = required(pod)
        except ConfigError as error:
            return status.unresolvable(str(error))

        state.write(self.NAME, requirement)
        return SUCCESS if requirement else SKIP

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node that does not match all that the pod requires."""
        requirement: Required = state.read(self.NAME)
        if requirement.matches(node):
            return SUCCESS

        return status.unresolvable(diagnosis.LEFT_OUT)

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Compile what the pod prefers."""
        listed = _node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        try:
            compiled = [
                (term, int(preferred.get("weight", 0)))
                for preferred in listed
                if (term := selectors.from_term(preferred.get("preference") or {})) is not None
            ]
        except ConfigError as error:
            return status.unresolvable(str(error))

        state.write(_PREFERRED, compiled)
        return SUCCESS if compiled else SKIP

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return the sum of the weights of the terms that match."""
        preferred: list[tuple[NodeSelectorTerm, int]] = state.read(_PREFERRED)
        return sum(weight for term, weight in preferred if term.matches(node.labels, node.name))

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """Turn more weight into a higher score."""
        normalizing.by_largest(scores)


def _node_affinity(pod: Object) -> Object:
    return (objects.spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
