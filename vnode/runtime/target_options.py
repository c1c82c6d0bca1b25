"""What a Target asks for beyond a connection, as its annotations say, for all who use its link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import cluster_bound
from vnode.api.node_pools import NodePool


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Holds the options of a Target.

    `storage_classes` maps classes of the source to those of the target for claims that follow, ""
    standing for a cluster's default; None means that claims do not follow. `source_api` is the host
    and port by which pods there reach the source's API server with a token of the source; None
    means that they get tokens of the target's own service accounts. `priority_classes` maps
    PriorityClasses of the source to those of the target, "" standing for none;
    `load_balancer_classes` and `ingress_classes` likewise. `follow_anyway` has what travels though
    it stays by `vnode.api.cluster_bound`. With `load_balancers`, Services and Ingresses have them
    there whatever stays, or never; None means by that table. `network_policies` says whether those
    of the source follow its pods. `shown_labels` are keys of labels that the Node itself has in any
    case, "*" for all. `label_domains` are keys and domains of labels that its nodes may share with
    that Node; all without any. `unlisted_resources` are resources that its nodes have without
    listing them. `node_pools` may grow; there are none if the annotation cannot be read.
    """

    storage_classes: Mapping[str, str] | None = None
    create_namespaces: bool = False
    create_service_accounts: bool = False
    source_api: tuple[str, str] | None = None
    priority_classes: Mapping[str, str] = field(default_factory=dict)
    shown_labels: frozenset[str] = frozenset()
    label_domains: frozenset[str] = frozenset()
    unlisted_resources: frozenset[str] = frozenset()
    node_pools: tuple[NodePool, ...] = ()
    load_balancer_classes: Mapping[str, str] = field(default_factory=dict)
    ingress_classes: Mapping[str, str] = field(default_factory=dict)
    follow_anyway: tuple[str, ...] = ()
    load_balancers: bool | None = None
    network_policies: bool = True

    def follows_anyway(self, name: str) -> bool:
        """Tell whether an annotation, or `spec.FIELD`, travels that stays by the table."""
        return any(cluster_bound.matches(pattern, name) for pattern in self.follow_anyway)


NO_OPTIONS: Final = TargetOptions()
