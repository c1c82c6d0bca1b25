"""Lists all plugins of this package, and the default profile.

The order is that of the extension points' calls. Of Filter plugins it decides which is asked first,
so that cheap ones come first, and which is named where several reject a node. Weights of plugins
that kube-scheduler has too are kube-scheduler's.
"""

from __future__ import annotations

from typing import Final

from scheduler_plugins.balanced_allocation import NodeResourcesBalancedAllocation
from scheduler_plugins.candidate_probe import CandidateProbe
from scheduler_plugins.chain import Chain
from scheduler_plugins.cluster_scores import ClusterScores
from scheduler_plugins.even_spread import EvenSpread
from scheduler_plugins.gangs import StartsTogether
from scheduler_plugins.inter_pod_affinity import InterPodAffinity
from scheduler_plugins.known_constraints import KnownConstraints
from scheduler_plugins.namespace_enabled import NamespaceEnabled
from scheduler_plugins.node_affinity import NodeAffinity
from scheduler_plugins.node_unschedulable import NodeUnschedulable
from scheduler_plugins.placement import PlacementPolicy
from scheduler_plugins.pod_topology_spread import PodTopologySpread
from scheduler_plugins.priority_sort import PrioritySort
from scheduler_plugins.resources_fit import NodeResourcesFit
from scheduler_plugins.scheduling_gates import SchedulingGates
from scheduler_plugins.shared_claims import SharedClaims
from scheduler_plugins.taint_toleration import TaintToleration
from scheduler_plugins.target_answer import TargetAnswer
from scheduler_plugins.target_classes import TargetClasses
from scheduler_plugins.target_health import TargetHealth
from scheduler_plugins.target_namespace import TargetNamespace
from scheduler_plugins.target_quota import TargetResourceQuota
from vnode.scheduling.plugin import Plugin

_WEIGHTED: Final[tuple[tuple[type[Plugin], int], ...]] = (
    (PrioritySort, 0),
    (SchedulingGates, 0),
    (StartsTogether, 0),
    (NamespaceEnabled, 0),
    (KnownConstraints, 0),
    (TargetNamespace, 0),
    (TargetHealth, 0),
    (TargetClasses, 0),
    (SharedClaims, 0),
    (TargetResourceQuota, 0),
    (Chain, 0),
    (NodeUnschedulable, 0),
    (TaintToleration, 3),
    (NodeAffinity, 2),
    (PodTopologySpread, 2),
    (InterPodAffinity, 2),
    (PlacementPolicy, 100),
    (TargetAnswer, 0),
    (NodeResourcesFit, 1),
    (NodeResourcesBalancedAllocation, 1),
    (EvenSpread, 2),
    (CandidateProbe, 0),
)

_OFF_BY_DEFAULT: Final[tuple[type[Plugin], ...]] = (ClusterScores,)

PLUGINS: Final = (*(plugin for plugin, _ in _WEIGHTED), *_OFF_BY_DEFAULT)
"""Every plugin class, for the registry."""

WEIGHTS: Final = {plugin.NAME: weight for plugin, weight in _WEIGHTED}
"""The default profile: name -> weight of its Score."""
