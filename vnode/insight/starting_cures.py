"""Names the cures for what a target's Events say of a pod that does not start. Pure."""

from __future__ import annotations

import re
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight.facts import TargetFacts

ASIDE: Final = frozenset(
    {
        *("CheckLimitsForResolvConf", "DNSConfigForming", "MissingClusterDNS", "PolicyViolation"),
        *("FailedToRetrieveImagePullSecret", "PossibleMemoryBackedVolumesOnDisk", "ProbeWarning"),
    }
)
"""Reasons of warnings that keep no pod from its start: remarks of kubelets, and of policies that
only report."""
_CURES: Final = (
    (
        r'(?P<kind>configmap|secret) "(?P<name>[^"]+)" not found',
        (
            "see that {kind} {name} is in namespace {namespace} of {target}: there, kubectl get "
            "{kind} {name} -n {namespace}; if it is by now, the node tries again by itself"
        ),
    ),
    (
        r"references non-existent (config|secret) key: (?P<key>\S+)",
        (
            "add key {key} to the ConfigMap or Secret of that volume, in namespace {namespace} of "
            "this cluster, from where it follows to {target} (if following is off: there), or "
            "correct the volume's items"
        ),
    ),
    (
        r"failed to sync \S+ cache|object \S+ not registered",
        (
            "node {node} of {target} tries again by itself; if it lasts, see whether it reaches "
            "its API server: there, kubectl describe node {node}"
        ),
    ),
    (
        r"driver name (?P<driver>\S+) not found in the list of registered CSI drivers",
        (
            "install CSI driver {driver} in {target}, or see why it does not run on node {node}: "
            "there, kubectl get csinodes {node} -o yaml"
        ),
    ),
    (
        r"hostPath type check failed",
        (
            "node {node} of {target} does not have that path, or not as the type of the pod's "
            "hostPath: make it there, or use another volume"
        ),
    ),
    (
        r"wrong fs type|/sbin/mount\.",
        (
            "node {node} of {target} lacks what mounts such a volume, such as nfs-common, or the "
            "volume holds another file system than it says"
        ),
    ),
    (
        r"failed to (get|pull) (and unpack )?(sandbox )?image",
        (
            "see that the nodes of {target} get the sandbox image that the text names: from its "
            "registry, or a mirror in the configuration of their container runtime"
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
        r"[Nn]etwork|CNI|\bcni|plugin type=",
        "see that the network plugin works on node {node} of {target}",
    ),
    (
        r"FailedCreatePodSandBox",
        (
            "see what the container runtime of node {node} of {target} lacks: there, kubectl "
            "describe node {node}"
        ),
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
