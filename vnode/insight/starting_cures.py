"""Names the cures for what a target's Events say of a pod that does not start. Pure."""

from __future__ import annotations

import re
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight.facts import TargetFacts

_CURES: Final = (
    (
        r'(?P<kind>configmap|secret) "(?P<name>[^"]+)" not found',
        (
            "see that {kind} {name} is in namespace {namespace} of {target}: there, kubectl get "
            "{kind} {name} -n {namespace}; if it is by now, the node tries again by itself"
        ),
    ),
    (
        r"failed to fetch token",
        (
            "see that the pod's service account is in namespace {namespace} of {target}: there, "
            "kubectl get serviceaccounts -n {namespace}"
        ),
    ),
    (
        r"no runtime for|[Hh]andler .*(not supported|not found)",
        (
            "set up the handler of the pod's RuntimeClass in the container runtime of node {node} "
            "of {target}, or have its scheduling select the nodes that have it"
        ),
    ),
    (
        r"assign an IP address|no IP addresses|no free IP|range set: range is full",
        (
            "node {node} of {target} has no addresses left for pods: add nodes, or widen the range "
            "of its network plugin"
        ),
    ),
    (
        r"FailedPrepareDynamicResources",
        (
            "see that the driver of the pod's devices works on node {node} of {target}: there, "
            "kubectl get resourceslices"
        ),
    ),
    (
        r"Multi-Attach error|already exclusively attached",
        (
            "another node of {target} has the volume: end the pod that uses it there, or claim one "
            "with accessMode ReadWriteMany"
        ),
    ),
    (
        r"FailedCreatePodSandBox|network: plugin|CNI",
        "see that the network plugin works on node {node} of {target}",
    ),
    (
        r"FailedAttachVolume|FailedMount|MountVolume|Unable to attach",
        (
            "see that the volume and its driver work: in {target}, kubectl get "
            "pvc,volumeattachments -n {namespace}"
        ),
    ),
)


def of(event: Object, target: TargetFacts, pod: Object) -> tuple[str, ...]:
    """Return the cures for the Event, and where there are more."""
    delegate = target.delegate or {}
    words = {
        "target": target.name,
        "namespace": objects.namespace(pod),
        "node": objects.node_name(delegate) or "NODE",
    }
    said = f"{event.get('reason')}: {event.get('message')}"
    more = f"all of its Events: {all_events(target, pod)}"
    for pattern, cure in _CURES:
        if match := re.search(pattern, said):
            return cure.format(**words, **match.groupdict()), more

    return (more,)


def all_events(target: TargetFacts, pod: Object) -> str:
    """Return the command that shows all Events of a pod's delegate."""
    name = objects.name(target.delegate or {}) or objects.name(pod)
    return f"in {target.name}, kubectl describe pod {name} -n {objects.namespace(pod)}"
