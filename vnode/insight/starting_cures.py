"""Names the cures for what a target's Events say of a pod that does not start. Pure."""

from __future__ import annotations

import re
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight.facts import TargetFacts

_CURES: Final = (
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
    found = (cure.format(**words) for pattern, cure in _CURES if re.search(pattern, said))
    name = objects.name(delegate) or objects.name(pod)
    more = (
        f"all of its Events: in {target.name}, kubectl describe pod {name} -n {words['namespace']}"
    )
    return (*list(found)[:1], more)
