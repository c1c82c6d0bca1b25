"""Orders the nodes that passed the filters: PreScore and Score, the end of a scheduling cycle."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from vnode.api.objects import Object
from vnode.scheduling import plugin_calls
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import Plugin, PreScorePlugin, ScorePlugin
from vnode.scheduling.result import ScoredNode
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status
from vnode.telemetry.metrics import extension_point


class Scoring:
    """Holds the plugins that score, with their weights, in the profile's order."""

    def __init__(self, plugins: Iterable[tuple[Plugin, int]]) -> None:
        weighted = tuple(plugins)
        self._pre_score = tuple(p for p, _ in weighted if isinstance(p, PreScorePlugin))
        self._score = tuple(
            (plugin, weight)
            for plugin, weight in weighted
            if isinstance(plugin, ScorePlugin) and weight > 0
        )
        # How many cycles found a node: where the next tie is broken.
        self._turn = itertools.count()

    def run(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: list[VirtualNodeInfo]
    ) -> tuple[tuple[ScoredNode, ...], Status]:
        """Return the nodes with their scores, best first; no success if a plugin fails."""
        with extension_point("PreScore"):
            status = self._run_pre_score(state, pod, snapshot, nodes)

        if not status.is_success:
            return (), status

        with extension_point("Score"):
            return self._score_all(state, pod, nodes)

    def _run_pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: list[VirtualNodeInfo]
    ) -> Status:
        for plugin in self._pre_score:
            status = plugin_calls.call(plugin, plugin.pre_score, state, pod, snapshot, nodes)
            if status.is_skip:
                state.skip_score.add(plugin.NAME)
            elif not status.is_success:
                return status

        return SUCCESS

    def _score_all(
        self, state: CycleState, pod: Object, nodes: list[VirtualNodeInfo]
    ) -> tuple[tuple[ScoredNode, ...], Status]:
        by_node: dict[str, dict[str, int]] = {node.name: {} for node in nodes}
        for plugin, weight in self._score:
            if plugin.NAME in state.skip_score:
                continue

            try:
                scores = plugin_calls.scores(plugin, state, pod, nodes)
            except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
                return (), plugin_calls.failed(plugin, failure)

            for name, score in scores.items():
                by_node[name][plugin.NAME] = score * weight

        return self._ranked(nodes, by_node), SUCCESS

    def _ranked(
        self, nodes: list[VirtualNodeInfo], by_node: dict[str, dict[str, int]]
    ) -> tuple[ScoredNode, ...]:
        """Sort nodes, best first; of equal ones, each cycle puts another first."""
        start = next(self._turn) % len(nodes)
        turned = nodes[start:] + nodes[:start]
        scored = [ScoredNode(n, sum(by_node[n.name].values()), by_node[n.name]) for n in turned]
        scored.sort(key=_total, reverse=True)
        return tuple(scored)


def _total(scored: ScoredNode) -> int:
    return scored.total
