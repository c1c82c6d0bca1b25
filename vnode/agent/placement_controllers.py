"""Puts together what keeps the pods of one term to placement policies, but for scheduling itself.

Scheduling asks the policies at each cycle (`proxy_scheduling`). What is here tells of plans, has
workloads shrink by them, and moves and replaces pods that run.
"""

from __future__ import annotations

from vnode.agent.parts import AwaitedStep, Part, Parts
from vnode.agent.proxy_scheduling import ProxyScheduling
from vnode.agent.shared import Shared
from vnode.kube.events import EventRecorder
from vnode.placement.decisions.publisher import DecisionPublisher
from vnode.placement.deletion_costs import DeletionCosts
from vnode.placement.failover.controller import Failovers
from vnode.placement.failover.lost_targets import LostTargets
from vnode.placement.failover.preserved_state import PreservedStates
from vnode.placement.moves.controller import Moves
from vnode.placement.moves.mover import Mover
from vnode.placement.moves.rebalances import Rebalances
from vnode.placement.placeholders.controller import Placeholders
from vnode.placement.status.controller import PolicyStatusController
from vnode.placement.workload_index import WorkloadIndex
from vnode.pods.source import proxy_state
from vnode.pods.source.proxy_controller import ProxyController
from vnode.runtime.supervisor import Supervisor
from vnode.scheduling.cache import Cache


class PlacementControllers:
    """The controllers of one term; `placeholders` has its gauge measured on each scrape.

    `lost` knows which targets are lost.
    """

    def __init__(
        self,
        shared: Shared,
        proxies: ProxyController,
        cache: Cache,
        scheduling: ProxyScheduling,
        events: EventRecorder,
    ) -> None:
        self._shared = shared
        self._proxies = proxies
        self._cache = cache
        self._scheduling = scheduling
        self._events = events
        self.lost = LostTargets(shared.links, shared.connections.findings, shared.clock)
        self._index = WorkloadIndex(shared.proxies, proxies.bound, shared.policies, shared.clock)
        self._publisher = DecisionPublisher(
            shared.client, shared.targets.profiles_of_nodes, shared.clock
        )
        self.placeholders = self._make_placeholders()
        self._moves = self._make_moves()
        self.placeholders.openings.subscribe(self._moves.look_at)

    def parts(self) -> Parts:
        """List what keeps pods to placement policies, most of it once these are known."""
        return (
            AwaitedStep("lost-targets-watched", self._watch_lost_targets),
            Part("workload-index", self._index.run),
            Part("published-decisions", self._publisher.run),
            Part("placement-status", lambda: self._make_policy_status().run()),
            # Else pods would be placed as if there were none.
            AwaitedStep("placement-policies-known", self._know_policies),
            Part("deletion-costs", lambda: self._make_deletion_costs().run()),
            Part("placeholders", self.placeholders.run),
            Part("moves", self._moves.run),
            Part("failovers", lambda: self._make_failovers().run()),
            Part("preserved-states", lambda: self._make_preserved_states().run()),
            Part("rebalances", lambda: self._make_rebalances().run()),
        )

    async def _watch_lost_targets(self, _tasks: Supervisor) -> None:
        self.lost.watch()

    async def _know_policies(self, _tasks: Supervisor) -> None:
        await self._shared.policies.wait_known()
        self._proxies.replacements.open()

    def _make_rebalances(self) -> Rebalances:
        shared = self._shared
        return Rebalances(shared.client, self._moves, events=self._events, clock=shared.clock)

    def _make_policy_status(self) -> PolicyStatusController:
        shared = self._shared
        return PolicyStatusController(
            shared.client,
            shared.policies,
            self._index,
            shared.proxies,
            self._proxies.bound,
            shared.nodes,
            shared.links,
            events=self._events,
            clock=shared.clock,
            publisher=self._publisher,
            lost=self.lost,
            weights=lambda policy, key: self._cache.workloads.weights(key, policy.group_by),
            moves=self._moves,
        )

    def _make_deletion_costs(self) -> DeletionCosts:
        shared = self._shared
        return DeletionCosts(
            shared.client,
            shared.proxies,
            shared.nodes,
            self._cache,
            shared.policies,
            self._index,
            shared.clock,
        )

    def _make_placeholders(self) -> Placeholders:
        shared = self._shared
        return Placeholders(
            shared.client,
            shared.proxies,
            shared.nodes,
            shared.links,
            self._cache,
            shared.policies,
            self._index,
            shared.clock,
        )

    def _make_moves(self) -> Moves:
        shared = self._shared
        on_plan_freed = self._scheduling.event_handlers.on_plan_freed
        mover = Mover(
            shared.client,
            self._cache,
            self._scheduling.framework.takers,
            self._scheduling.rooms,
            shared.policies,
            events=self._events,
            clock=shared.clock,
            placeholders=self.placeholders.openings,
            replacements=self._proxies.replacements,
            on_plan_freed=on_plan_freed,
        )
        return Moves(
            mover,
            shared.proxies,
            shared.nodes,
            shared.links,
            self._cache,
            shared.policies,
            self._index,
            clock=shared.clock,
            on_plan_freed=on_plan_freed,
        )

    def _make_failovers(self) -> Failovers:
        shared, store = self._shared, self._shared.proxies.store
        return Failovers(
            shared.client,
            shared.proxies,
            lambda node: store.by_index(proxy_state.NODE_INDEX, node),
            self._proxies.bound,
            self.lost,
            shared.policies,
            self._proxies.replacements,
            events=self._events,
            clock=shared.clock,
        )

    def _make_preserved_states(self) -> PreservedStates:
        shared, store = self._shared, self._shared.proxies.store
        return PreservedStates(
            shared.client,
            shared.proxies,
            lambda owner: store.by_index(proxy_state.CONTROLLER_INDEX, owner),
            self._proxies.replacements.is_moved,
            shared.policies,
            self._events,
        )
