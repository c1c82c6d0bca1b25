"""Puts together what one term does for sources: this cluster as a target.

Sources get their permissions and read what this cluster has; their chaperons become delegates.
"""

from __future__ import annotations

from vnode.agent.shared import Shared
from vnode.nodes.coexistence import Coexistence
from vnode.nodes.summary import SummaryWriter
from vnode.pods import chains
from vnode.pods.target.chaperon_controller import ChaperonController
from vnode.pods.target.gang_conflicts import GangConflicts
from vnode.targets.source_grants import SourceGrants
from vnode.targets.sources import SourceController


class TargetSide:
    """Makes the controllers of one term that serve sources."""

    def __init__(self, shared: Shared, coexistence: Coexistence) -> None:
        self._shared = shared
        self._coexistence = coexistence
        self._grants = SourceGrants()

    def make_sources(self) -> SourceController:
        """Make what gives Sources their permissions here."""
        shared = self._shared
        return SourceController(
            *(shared.client, shared.namespaces, shared.options.namespace),
            clock=shared.clock,
            grants=self._grants,
        )

    def make_summary_writer(self) -> SummaryWriter:
        """Make what tells sources of this cluster in its ClusterSummary."""
        shared, config = self._shared, self._shared.options.config
        return SummaryWriter(
            shared.client,
            shared.options.namespace,
            clock=shared.clock,
            cluster=shared.identity,
            coexistence=self._coexistence,
            model_labels=config.model_labels,
            streams_namespace=shared.options.namespace if config.ports.streams else "",
            proxies=shared.proxies,
        )

    def make_chaperons(self) -> ChaperonController:
        """Make what keeps a delegate for each chaperon."""
        shared = self._shared
        return ChaperonController(
            shared.client,
            shared.chaperons,
            shared.delegates,
            goes_on=lambda chaperon: chains.goes_on(
                chaperon, shared.identity.uid, shared.targets.usable, shared.links
            ),
            sources=self._grants.of,
            clock=shared.clock,
            delegate_events=shared.options.config.delegate_events,
            writes_permissions=not shared.options.config.ports.streams,
        )

    def make_gang_conflicts(self) -> GangConflicts:
        """Make what has one of two gangs of different sources make way."""
        shared = self._shared
        return GangConflicts(shared.client, shared.chaperons, shared.clock)
