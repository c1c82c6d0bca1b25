"""Runs the plugins of a profile over one pod: the scheduling cycle, and what follows it.

`schedule` is synchronous and in memory. It returns the nodes that can take the pod, best first, or
the reason of every node; it decides nothing: the caller tries candidates in that order, and then
runs the `binding_cycle` for the one that won.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.scheduling import plugin_calls
from vnode.scheduling.binding_cycle import BindingCycle
from vnode.scheduling.cycle import UNPLANNED, CycleState
from vnode.scheduling.events import ClusterEventWithHint
from vnode.scheduling.plugin import (
    FilterPlugin,
    PlanPlugin,
    Plugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueueSortPlugin,
    Rejection,
)
from vnode.scheduling.plugin_calls import NodeRejections, first_rejection
from vnode.scheduling.result import CycleResult, ScoredNode
from vnode.scheduling.scoring import Scoring
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from vnode.scheduling.waiting_pods import WaitingPods
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
        self._pre_enqueue = tuple(p for p in all_plugins if isinstance(p, PreEnqueuePlugin))
        self._pre_filter = tuple(p for p in all_plugins if isinstance(p, PreFilterPlugin))
        self._post_filter = tuple(p for p in all_plugins if isinstance(p, PostFilterPlugin))
        self._plan = tuple(p for p in all_plugins if isinstance(p, PlanPlugin))
        filters = tuple(p for p in all_plugins if isinstance(p, FilterPlugin))
        self._scoring = Scoring(weighted)
        self.binding_cycle = BindingCycle(all_plugins, waiting, clock)
        # The plugins whose UNSCHEDULABLE a target overrules by reserving a place.
        self._estimates = frozenset(p.NAME for p in filters if p.IS_ESTIMATE).union(
            *(plugin.overcomes() for plugin in self._post_filter)
        )
        self._guesses = tuple(p for p in filters if p.NAME in self._estimates)
        self._facts = tuple(p for p in filters if p not in (*self._plan, *self._guesses))
        sorts = tuple(p for p in all_plugins if isinstance(p, QueueSortPlugin))
        if len(sorts) != 1:
            names = ", ".join(plugin.NAME for plugin in sorts) or "none"
            raise ConfigError(f"enable exactly one QueueSort plugin, not {len(sorts)} ({names})")

        self.queue_sort: QueueSortPlugin = sorts[0]

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
        """Run one scheduling cycle: PreFilter, Plan, Filter, PreScore, Score, or else PostFilter.

        `asked` is `CycleState.asked`. PostFilter runs, too, for a pod that the targets of all nodes
        that passed have rejected before. Whoever goes by the result records it.
        """
        for plugin in self._plan:
            plugin_calls.notify(plugin, plugin.restore, pod, snapshot)

        state = CycleState(asked or {})
        with extension_point("PreFilter"):
            status = self._run_pre_filter(state, pod, snapshot)

        if not status.is_success:
            statuses = {node.name: status for node in snapshot.nodes}
            return self._rejected(state, pod, snapshot, statuses, status)

        rejection = NodeRejections(_asked(self._facts, state), state, pod)
        with extension_point("Plan"):
            status = self._run_plan(state, pod, snapshot, rejection)

        if not status.is_success:
            statuses = {node.name: status for node in snapshot.nodes}
            return self._rejected(state, pod, snapshot, statuses, status)

        with extension_point("Filter"):
            passed, statuses = self._run_filter(state, pod, snapshot, rejection)

        if not passed:
            return self._rejected(state, pod, snapshot, statuses, SUCCESS)

        scored, status = self._scoring.run(state, pod, snapshot, passed)
        nominated: tuple[str, ...] = ()
        if asked and all(node.name in asked for node in passed):
            nominated = self._run_post_filter(state, pod, snapshot, statuses)

        return CycleResult(status, scored, statuses, nominated, self._excluded(statuses), state)

    def check(self, pod: Object, snapshot: Snapshot, node_name: str) -> Status:
        """Return whether the pod may still be on a node, some time after its cycle.

        PreFilter, Plan and Filter run once more, for this node. A rejection that a target overrules
        by reserving a place, such as an estimate of its free resources, does not count.
        """
        state = CycleState()
        status = self._judge(state, pod, snapshot, node_name)
        return status if self._excludes(status) else SUCCESS

    def schedule_on(
        self, pod: Object, snapshot: Snapshot, node_name: str, elsewhere: Status
    ) -> CycleResult:
        """Run a cycle for a pod whose node is chosen; `elsewhere` rejects all others.

        Like `check`, it leaves it to the target whether there is room.
        """
        for plugin in self._plan:
            plugin_calls.notify(plugin, plugin.restore, pod, snapshot)

        state = CycleState()
        status = self._judge(state, pod, snapshot, node_name)
        statuses = {n.name: elsewhere for n in snapshot.nodes if n.name != node_name}
        node = snapshot.get(node_name)
        if node is not None and not self._excludes(status):
            scored = (ScoredNode(node, 0, {}),)
            return CycleResult(SUCCESS, scored, statuses, (), frozenset(statuses), state)

        statuses[node_name] = status
        return CycleResult(status, (), statuses, (), frozenset(statuses), state)

    def _judge(self, state: CycleState, pod: Object, snapshot: Snapshot, node_name: str) -> Status:
        """Run PreFilter, Plan and Filter for one node, but for estimates."""
        node = snapshot.get(node_name)
        if node is None:
            return unresolvable("the target is not connected")

        state.reserved = node_name
        status = self._run_pre_filter(state, pod, snapshot)
        rejection = NodeRejections(_asked(self._facts, state), state, pod)
        if status.is_success:
            status = self._run_plan(state, pod, snapshot, rejection)

        if status.is_success:
            guesses = [plugin for plugin in self._guesses if not plugin.IS_ESTIMATE]
            status = self._rejections(state, pod, rejection, guesses)(node) or SUCCESS

        return status

    def takers(self, pod: Object, snapshot: Snapshot) -> tuple[frozenset[str], frozenset[str]]:
        """Return the nodes that could take a pod of this kind, and those that could do so now.

        The latter also have room, by all that is known, and need not be asked first. No plan is
        made. The pod may be bound already.
        """
        able, open_now = set[str](), set[str]()
        for name, (fact, guess) in self.verdicts(pod, snapshot).items():
            if fact is None or fact.is_pending:
                able.add(name)

            if fact is None and guess is None:
                open_now.add(name)

        return frozenset(able), frozenset(open_now)

    def verdicts(
        self, pod: Object, snapshot: Snapshot
    ) -> dict[str, tuple[Status | None, Status | None]]:
        """Return for each node what rejects a pod of this kind there, None for nothing.

        First what is known of the node, then what is guessed, such as that it is full.
        """
        state = CycleState()
        state.asks = False
        refused = self._run_pre_filter(state, pod, snapshot)
        if not refused.is_success:
            return {node.name: (refused, None) for node in snapshot.nodes}

        facts, guesses = _asked(self._facts, state), _asked(self._guesses, state)
        found: dict[str, tuple[Status | None, Status | None]] = {}
        for node in snapshot.nodes:
            fact = first_rejection(facts, state, pod, node)
            guess = first_rejection(guesses, state, pod, node) if fact is None else None
            found[node.name] = fact, guess

        return found

    def _run_pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        for plugin in self._pre_filter:
            status = plugin_calls.call(plugin, plugin.pre_filter, state, pod, snapshot)
            if status.is_skip:
                state.skip_filter.add(plugin.NAME)
            elif not status.is_success:
                return status

        return SUCCESS

    def _run_plan(
        self, state: CycleState, pod: Object, snapshot: Snapshot, rejection: Rejection
    ) -> Status:
        """Have the pod planned by the first plugin that does; the others are skipped."""
        is_planned = False
        for plugin in self._plan:
            status, outcome = SKIP, UNPLANNED
            if not is_planned:
                try:
                    status, outcome = plugin.plan(state, pod, snapshot, rejection)
                except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
                    return plugin_calls.failed(plugin, failure)

            if status.is_skip:
                state.skip_filter.add(plugin.NAME)
            elif not status.is_success:
                return status.with_plugin(plugin.NAME)
            else:
                is_planned, state.outcome = True, outcome

        return SUCCESS

    def _run_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot, rejection: NodeRejections
    ) -> tuple[list[VirtualNodeInfo], dict[str, Status]]:
        reject = self._rejections(state, pod, rejection, self._guesses)
        passed: list[VirtualNodeInfo] = []
        statuses: dict[str, Status] = {}
        for node in snapshot.nodes:
            status = reject(node)
            if status is None:
                passed.append(node)
            else:
                statuses[node.name] = status

        return passed, statuses

    def _rejections(
        self,
        state: CycleState,
        pod: Object,
        rejection: NodeRejections,
        guesses: Iterable[FilterPlugin],
    ) -> Rejection:
        """Return what says why a node does not pass: a guess only if nothing else is against it.

        So the order of the profile decides nothing, and a guess says that only that is missing.
        """
        plans, asked = _asked(self._plan, state), _asked(guesses, state)
        if not plans:
            return lambda node: first_rejection(rejection.filters, state, pod, node, asked)

        def reject(node: VirtualNodeInfo) -> Status | None:
            fact = rejection(node)
            if fact is not None and not fact.is_pending:
                return fact

            planned = first_rejection(plans, state, pod, node)
            return planned or fact or first_rejection(asked, state, pod, node)

        return reject

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


def _asked(filters: Iterable[FilterPlugin], state: CycleState) -> list[FilterPlugin]:
    """Return the filters that do not skip the pod."""
    return [plugin for plugin in filters if plugin.NAME not in state.skip_filter]
