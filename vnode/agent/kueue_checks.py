"""Puts together what answers Kueue's admission checks: it judges as the scheduler of the term."""

from __future__ import annotations

from typing import Final

from scheduler_plugins.node_affinity import NodeAffinity
from scheduler_plugins.resources_fit import NodeResourcesFit
from scheduler_plugins.target_namespace import TargetNamespace
from vnode.agent.shared import Shared
from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.kueue.controller import WorkloadChecks
from vnode.kueue.judging import JudgedBy
from vnode.kueue.lost_workloads import Losses
from vnode.overrides import json_patch
from vnode.overrides.applying import clone
from vnode.overrides.json_patch import Operation
from vnode.pods import chaperon_spec
from vnode.scheduling.cache import Cache
from vnode.scheduling.framework import Framework
from vnode.webhook import mutate

LASTING: Final = frozenset((NodeAffinity.NAME, TargetNamespace.NAME))
COUNTED: Final = frozenset((NodeResourcesFit.NAME,))


def make(shared: Shared, framework: Framework, cache: Cache, losses: Losses) -> WorkloadChecks:
    """Make what answers for one term."""
    judged_by = JudgedBy(
        framework,
        cache,
        as_proxy=lambda pod: as_proxy(pod, shared.manifests),
        constraints=lambda pod: chaperon_spec.constraints(pod, shared.manifests),
        lasting=LASTING,
        counted=COUNTED,
    )
    return WorkloadChecks(
        shared.client, judged_by, shared.links, shared.nodes, losses, shared.clock
    )


def as_proxy(pod: Object, manifests: SavedManifests) -> Object:
    """Return the proxy that the webhook would make of a pod; ConfigError if it would refuse it."""
    proxy = clone(pod)
    patch = mutate.proxy_patch(pod, objects.namespace(pod), (), manifests)
    operations = [
        Operation(each["op"], json_patch.pointer(each["path"]), each.get("value")) for each in patch
    ]
    json_patch.apply(proxy, operations)
    return proxy
