"""Filter and Score by what others say of clusters: scores, properties, and what is free.

Off by default. The arguments list weighted scores, which make targets better or worse, and
conditions, which leave targets out:

    scores: [{source: AddOn, resource: resource-usage-score, name: gpuNodeAvailable, weight: 3}]
    conditions: [{source: ClusterScore, name: price, operator: Le, values: [40]}]

A score that is missing or has ended counts as `missing` says. Conditions are looked at once: a
place that is reserved for a pod is taken, whatever became of a score meanwhile, since the pod's own
candidate may have changed it. Pods that run stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from scheduler_plugins import score_values
from vnode.api import objects, quantities, score_maths, score_terms
from vnode.api.cluster_scores import HIGHEST, LOWEST
from vnode.api.objects import Object
from vnode.api.score_terms import (
    MissingScore,
    ScoreCondition,
    ScoreConditionSpec,
    ScoreSource,
    WeightedScore,
    WeightedScoreSpec,
)
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import (
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status

_Term = TypeVar("_Term", WeightedScore, ScoreCondition)

_FILTERS: Final = "ClusterScores, what filters"
"""The key of what may leave targets out, in the state of a cycle."""


class ClusterScoresArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ClusterScores."""

    scores: tuple[WeightedScoreSpec, ...] = ()
    conditions: tuple[ScoreConditionSpec, ...] = ()


class ClusterScores(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Goes by those entries of its arguments that are for the pod."""

    NAME = "ClusterScores"
    Args = ClusterScoresArgs

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        where = f"arguments of {self.NAME}"
        self._scores = score_terms.weighted(args.scores, f"{where}: scores")
        self._conditions = score_terms.conditions(args.conditions, f"{where}: conditions")
        self._used = {*(w.of for w in self._scores), *(c.of for c in self._conditions)}
        for reference in self._used:
            handle.use_score(reference)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which a target may have another score."""
        found = [EventKind.NODE_ADD, EventKind.NODE_LABELS, EventKind.TARGET_SCORES]
        if any(reference.source is ScoreSource.FREE for reference in self._used):
            found.append(EventKind.TARGET_FREE)

        return [ClusterEventWithHint(kind) for kind in found]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Find out what may leave targets out for the pod; skip it if nothing may."""
        conditions = _of_pod(self._conditions, state, pod)
        needed = [
            each
            for each in _of_pod(self._scores, state, pod)
            if each.missing is MissingScore.EXCLUDE
        ]
        state.write(_FILTERS, (conditions, needed))
        return SUCCESS if conditions or needed else SKIP

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node that does not satisfy a condition, or has no score that it must have.

        What changes from minute to minute is left out of the reason, which is written to all pods
        that wait.
        """
        if node.name == state.reserved:
            return SUCCESS

        conditions: Sequence[ScoreCondition]
        needed: Sequence[WeightedScore]
        conditions, needed = state.read(_FILTERS)
        now = self.handle.clock.now()
        found = [why for each in conditions if (why := self._refusal(each, state, node, now))]
        for each in needed:
            value = score_values.find(each.of, node, now)
            if value.amount is None and value.why not in found:
                found.append(value.why)

        return status.unresolvable(*found) if found else SUCCESS

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Compute all scores, some of which are relative to those of the other nodes."""
        weighted = _of_pod(self._scores, state, pod) if len(nodes) > 1 else ()
        if not weighted:
            return SKIP

        now = self.handle.clock.now()
        by_term = [(each, _scored(each, nodes, now)) for each in weighted]
        state.write(
            self.NAME,
            {
                node.name: score_maths.combined(
                    (each.weight, scores.get(node.name, _missing(each))) for each, scores in by_term
                )
                for node in nodes
            },
        )
        return SUCCESS

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return what weights and scores give together."""
        scores: dict[str, int] = state.read(self.NAME)
        return scores[node.name]

    def _refusal(
        self, condition: ScoreCondition, state: CycleState, node: VirtualNodeInfo, now: datetime
    ) -> str:
        """Return why a node does not satisfy a condition, "" if it does."""
        value = score_values.find(condition.of, node, now)
        if condition.admits(value.amount):
            return ""

        if value.amount is None:
            return value.why

        if value.until is not None and condition.admits(None):
            state.retry_by(self.handle.clock.monotonic() + (value.until - now).total_seconds())

        return f"{condition.of.text} is not {condition.asked}"


def _of_pod(terms: Iterable[_Term], state: CycleState, pod: Object) -> list[_Term]:
    """Return the entries that are for the pod."""
    labels, requests = objects.labels(pod), state.requests(pod)
    return [each for each in terms if each.pods.include(labels, requests)]


def _scored(each: WeightedScore, nodes: Sequence[VirtualNodeInfo], now: datetime) -> dict[str, int]:
    """Return the scores of those nodes that have one."""
    found = ((node.name, score_values.find(each.of, node, now).amount) for node in nodes)
    amounts = {name: amount for name, amount in found if amount is not None}
    if not each.of.is_absolute:
        return score_maths.relative(amounts)

    return {name: amount // quantities.NANO for name, amount in amounts.items()}


def _missing(each: WeightedScore) -> int:
    """Return what a node counts that has no score."""
    if each.missing is not MissingScore.WORST:
        return 0

    return LOWEST if each.weight > 0 else HIGHEST
