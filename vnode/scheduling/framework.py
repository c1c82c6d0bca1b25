"""Runs the plugins of a profile over one pod: the scheduling cycle, and what follows it.

`schedule` is synchronous and in memory. It returns the nodes that can take the pod, best first, or
the reason of every node; it decides nothing: the caller tries candidates in that order, and then
calls `reserve`, `permit`, `pre_bind`, `bind` and `post_bind` for the one that won, or `unreserve`.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.scheduling import plugin_calls
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint
from vnode.scheduling.plugin import (
    BindPlugin,
    FilterPlugin,
    FilterRunner,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from vnode.scheduling.result import CycleResult, ScoredNode
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from vnode.scheduling.waiting_pods import WaitingPod, WaitingPods
from vnode.telemetry.metrics import extension_point

_log = logging.getLogger(__name__)


class Framework:
    """Holds the plugins of one profile, by extension point, in the profile's order."""

    def __init__(
        self, plugins: Iterable[tuple[Plugin, int]], waiting: WaitingPods, clock: Clock
    ) -> None:
        """Sort plugins with their weights into extension points; a weight counts at Score only."""
        weighted = tuple(plugins)
        all_plugins = self._all = tuple(plugin for plugin, _ in weighted)
        self._waiting = waiting
        self._clock = clock
        self._pre_enqueue = tuple(p for p in all_plugins if isinstance(p, PreEnqueuePlugin))
        self._pre_filter = tuple(p for p in all_plugins if isinstance(p, PreFilterPlugin))
        self._filter = tuple(p for p in all_plugins if isinstance(p, FilterPlugin))
        self._post_filter = tuple(p for p in all_plugins if isinstance(p, PostFilterPlugin))
        self._pre_score = tuple(p for p in all_plugins if isinstance(p, PreScorePlugin))
        self._score = tuple(
            (plugin, weight)
            for plugin, weight in weighted
            if isinstance(plugin, ScorePlugin) and weight > 0
        )
        self._reserve = tuple(p for p in all_plugins if isinstance(p, ReservePlugin))
        self._permit = tuple(p for p in all_plugins if isinstance(p, PermitPlugin))
        self._pre_bind = tuple(p for p in all_plugins if isinstance(p, PreBindPlugin))
        self._bind = tuple(p for p in all_plugins if isinstance(p, BindPlugin))
        # The plugins whose UNSCHEDULABLE a target overrules by reserving a place.
        self._estimates = frozenset(p.NAME for p in self._filter if p.IS_ESTIMATE).union(
            *(plugin.overcomes() for plugin in self._post_filter)
        )
        self._post_bind = tuple(p for p in all_plugins if isinstance(p, PostBindPlugin))
        sorts = tuple(p for p in all_plugins if isinstance(p, QueueSortPlugin))
        if len(sorts) != 1:
            names = ", ".join(plugin.NAME for plugin in sorts) or "none"
            raise ConfigError(f"enable exactly one QueueSort plugin, not {len(sorts)} ({names})")

        self.queue_sort: QueueSortPlugin = sorts[0]
        # How many cycles found a node: where the next tie is broken.
        self._turn = itertools.count()

    def filters_before(self, name: str) -> FilterRunner:
        """Return what runs the Filter plugins that come before the plugin of that name."""
        earlier = list(itertools.takewhile(lambda plugin: name != plugin.NAME, self._filter))

        def run(state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status | None:
            filters = [plugin for plugin in earlier if plugin.NAME not in state.skip_filter]
            return plugin_calls.first_rejection(filters, state, pod, node)

        return run

    def registrations(self) -> dict[str, frozenset[ClusterEventWithHint]]:
        """Return plugin -> the events that may undo its rejections, for the queue."""
        return {plugin.NAME: frozenset(plugin.events_to_register()) for plugin in self._all}

    def pre_enqueue(self, pod: Object) -> Status:
        """Return success if the pod may be queued."""
        for plugin in self._pre_enqueue:
            status = plugin_calls.call(plugin, plugin.pre_enqueue, pod)
            if not status.is_success:
                return status

        return SUCCESS

    @property
    def nominates(self) -> bool:
        """Whether a plugin leaves candidates on nodes that did not pass."""
        return bool(self._post_filter)

    def schedule(
        self, pod: Object, snapshot: Snapshot, asked: Mapping[str, float] | None = None
    ) -> CycleResult:
        """Run one scheduling cycle: PreFilter, Filter, PreScore and Score, or else PostFilter.

        `asked` is `CycleState.asked`. PostFilter runs, too, for a pod that the targets of all nodes
        that passed have rejected before.
        """
        state = CycleState(asked or {})
        with extension_point("PreFilter"):
            status = self._run_pre_filter(state, pod, snapshot, self._pre_filter)

        if not status.is_success:
            statuses = {node.name: status for node in snapshot.nodes}
            return self._rejected(state, pod, snapshot, statuses, status)

        with extension_point("Filter"):
            passed, statuses = self._run_filter(state, pod, snapshot)

        if not passed:
            return self._rejected(state, pod, snapshot, statuses, SUCCESS)

        scored, status = self._run_score(state, pod, snapshot, passed)
        nominated: tuple[str, ...] = ()
        if asked and all(node.name in asked for node in passed):
            nominated = self._run_post_filter(state, pod, snapshot, statuses)

        return CycleResult(status, scored, statuses, nominated, self._excluded(statuses), state)

    def check(self, pod: Object, snapshot: Snapshot, node_name: str) -> Status:
        """Return whether the pod may still be on a node, some time after its cycle.

        PreFilter and Filter run once more, for this node. A rejection that a target overrules by
        reserving a place, such as an estimate of its free resources, does not count.
        """
        node = snapshot.get(node_name)
        if node is None:
            return unresolvable("the target is not connected")

        state = CycleState()
        status = self._run_pre_filter(state, pod, snapshot, self._pre_filter)
        if status.is_success:
            filters = [plugin for plugin in self._filters(state) if not plugin.IS_ESTIMATE]
            status = plugin_calls.first_rejection(filters, state, pod, node) or SUCCESS

        return status if self._excludes(status) else SUCCESS

    def takers(
        self, pod: Object, snapshot: Snapshot, name: str
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the nodes that could take a pod of this kind, and those that could do so now.

        The former pass all Filter plugins before the one of that name, the latter those after it,
        too. That one itself is not asked. The pod may be bound already.
        """
        state = CycleState()
        others = [plugin for plugin in self._pre_filter if name != plugin.NAME]
        if not self._run_pre_filter(state, pod, snapshot, others).is_success:
            return frozenset(), frozenset()

        filters = [plugin for plugin in self._filters(state) if name != plugin.NAME]
        order = [plugin.NAME for plugin in self._filter]
        later = order[order.index(name) :] if name in order else ()
        able, open_now = set(), set()
        for node in snapshot.nodes:
            rejection = plugin_calls.first_rejection(filters, state, pod, node)
            if rejection is None:
                open_now.add(node.name)

            if rejection is None or rejection.plugin in later:
                able.add(node.name)

        return frozenset(able), frozenset(open_now)

    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run all Reserve plugins until one rejects the pod, which undoes all of them."""
        with extension_point("Reserve"):
            for plugin in self._reserve:
                status = plugin_calls.call(plugin, plugin.reserve, state, pod, node_name)
                if not status.is_success:
                    self.unreserve(state, pod, node_name)
                    return status

            return SUCCESS

    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Undo `reserve`, last plugin first."""
        for plugin in reversed(self._reserve):
            plugin_calls.notify(plugin, plugin.unreserve, state, pod, node_name)

    async def permit(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run all Permit plugins; if some return WAIT, hold the pod until it is decided."""
        timeouts: dict[str, float] = {}
        for plugin in self._permit:
            try:
                status, seconds = plugin.permit(state, pod, node_name)
            except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
                return plugin_calls.failed(plugin, failure)

            if status.is_wait:
                timeouts[plugin.NAME] = seconds
            elif not status.is_success:
                return status.with_plugin(plugin.NAME)

        if not timeouts:
            return SUCCESS

        with extension_point("Permit"):
            return await self._hold(objects.uid(pod), node_name, timeouts)

    async def pre_bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run all PreBind plugins until one rejects the pod."""
        with extension_point("PreBind"):
            for plugin in self._pre_bind:
                try:
                    status = await plugin.pre_bind(state, pod, node_name)
                except Exception as failure:  # noqa: BLE001 - a plugin's bug is its status
                    status = plugin_calls.failed(plugin, failure)

                if not status.is_success:
                    return status.with_plugin(plugin.NAME)

            return SUCCESS

    async def bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run Bind plugins until one does not SKIP; SKIP if the caller is to bind the pod."""
        with extension_point("Bind"):
            for plugin in self._bind:
                try:
                    status = await plugin.bind(state, pod, node_name)
                except Exception as failure:  # noqa: BLE001 - a plugin's bug is its status
                    status = plugin_calls.failed(plugin, failure)

                if not status.is_skip:
                    return status.with_plugin(plugin.NAME)

            return SKIP

    def post_bind(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Notify the PostBind plugins."""
        for plugin in self._post_bind:
            plugin_calls.notify(plugin, plugin.post_bind, state, pod, node_name)

    def _run_pre_filter(
        self,
        state: CycleState,
        pod: Object,
        snapshot: Snapshot,
        plugins: Iterable[PreFilterPlugin],
    ) -> Status:
        for plugin in plugins:
            status = plugin_calls.call(plugin, plugin.pre_filter, state, pod, snapshot)
            if status.is_skip:
                state.skip_filter.add(plugin.NAME)
            elif not status.is_success:
                return status

        return SUCCESS

    def _run_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot
    ) -> tuple[list[VirtualNodeInfo], dict[str, Status]]:
        filters = self._filters(state)
        passed: list[VirtualNodeInfo] = []
        statuses: dict[str, Status] = {}
        for node in snapshot.nodes:
            status = plugin_calls.first_rejection(filters, state, pod, node)
            if status is None:
                passed.append(node)
            else:
                statuses[node.name] = status

        return passed, statuses

    def _filters(self, state: CycleState) -> list[FilterPlugin]:
        return [plugin for plugin in self._filter if plugin.NAME not in state.skip_filter]

    def _excludes(self, status: Status) -> bool:
        if status.is_success:
            return False

        return status.code is not Code.UNSCHEDULABLE or status.plugin not in self._estimates

    def _excluded(self, statuses: Mapping[str, Status]) -> frozenset[str]:
        return frozenset(name for name, status in statuses.items() if self._excludes(status))

    def _rejected(
        self,
        state: CycleState,
        pod: Object,
        snapshot: Snapshot,
        statuses: dict[str, Status],
        why: Status,
    ) -> CycleResult:
        if why.is_success:
            broken = [status for status in statuses.values() if status.code is Code.ERROR]
            why = broken[0] if broken else unschedulable("no target can take the pod")

        if why.code is Code.ERROR:
            return CycleResult(why, (), statuses, (), self._excluded(statuses), state)

        nominated = self._run_post_filter(state, pod, snapshot, statuses)
        return CycleResult(why, (), statuses, nominated, self._excluded(statuses), state)

    def _run_post_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot, statuses: dict[str, Status]
    ) -> tuple[str, ...]:
        with extension_point("PostFilter"):
            for plugin in self._post_filter:
                try:
                    names, status = plugin.post_filter(state, pod, snapshot, statuses)
                except Exception:  # noqa: BLE001 - the pod is unschedulable with or without it
                    _log.exception("plugin %s failed in post_filter", plugin.NAME)
                    continue

                if status.is_success:
                    return tuple(names)

            return ()

    def _run_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: list[VirtualNodeInfo]
    ) -> tuple[tuple[ScoredNode, ...], Status]:
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

    async def _hold(self, uid: str, node_name: str, timeouts: dict[str, float]) -> Status:
        held = WaitingPod(uid, node_name, timeouts)
        self._waiting.add(held)
        try:
            return await held.wait(self._clock)
        finally:
            self._waiting.remove(uid)


def _total(scored: ScoredNode) -> int:
    return scored.total
