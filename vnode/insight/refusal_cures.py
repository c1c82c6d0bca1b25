"""Names the cures for what targets, and API servers on the way to them, say against a pod. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.insight import looked_up_cures, whole_reasons
from vnode.insight.facts import Facts

_CURES: Final = (
    (
        r"Insufficient|Too many pods",
        "add nodes in the target that are large enough, or lower the pod's requests",
    ),
    (
        r"exceeded quota|no room in ResourceQuota",
        "raise the ResourceQuota of the namespace in the target",
    ),
    (
        r"failed quota: \S+ must specify|ResourceQuota \S+ makes mandatory",
        "set them in the pod, or make a LimitRange with defaults in the target's namespace",
    ),
    (
        r"usage per (Container|Pod)|max limit to request ratio",
        "change the pod's requests and limits, or the LimitRange of the namespace in the target",
    ),
    (
        r"must be less than or equal to \S+ limit",
        (
            "set limits in the pod that are not below its requests; a LimitRange of the namespace "
            "in the target may have set those that the pod lacks"
        ),
    ),
    (r"violates PodSecurity", "change the pod, or the Pod Security label in the target"),
    (
        r'error looking up service account|serviceaccounts? "[^"]+" not found',
        "create the service account, or name another one, in the target",
    ),
    (
        r"(Runtime|Priority|Device)Class .*not found",
        "create the class in the target, or name one that is there, in the pod",
    ),
    (
        r"no answer for|not decided yet",
        (
            "see that the target's agent and its candidate scheduler run, and its admission "
            "webhooks: vnode doctor --target FILE"
        ),
    ),
    (
        r"(?<!node\(s\) )didn't match Pod's node affinity",
        (
            "compare its constraints with the labels of virtual nodes: kubectl get nodes "
            f"-l {keys.PROVIDER_LABEL}={keys.PROVIDER} --show-labels"
        ),
    ),
    (
        r"node\(s\) didn't match Pod's node affinity|no node has",
        (
            "compare its constraints with the labels of the nodes in the target: there, kubectl "
            "get nodes --show-labels"
        ),
    ),
    (
        r"(?<!node\(s\) )didn't (match pod|satisfy existing pods) (anti-)?affinity rules",
        "relax the pod's affinity between pods, or connect a target that satisfies it",
    ),
    (
        r"(?<!node\(s\) )didn't match pod topology spread constraints",
        "relax the pod's topologySpreadConstraints, or connect a target that satisfies them",
    ),
    (
        r"node\(s\) were unschedulable",
        "uncordon the nodes of {target} (there: kubectl uncordon NODE)",
    ),
    (
        r"(?<!node\(s\) )had untolerated taint",
        (
            "give the pod a toleration for the taint of the virtual node, in the annotation "
            f"{keys.PROXY_CONSTRAINTS}"
        ),
    ),
    (r"cannot be reached|not connected|unreachable", "vnode doctor says what is in the way"),
    (r"namespaces .* not found", "create the namespace in the target"),
    (
        r"node\(s\) didn't (match pod|satisfy existing pods) (anti-)?affinity rules",
        (
            "relax the pod's affinity between pods, or add nodes in {target}: its own nodes and "
            "pods do not satisfy it"
        ),
    ),
    (
        r"node\(s\) didn't match pod topology spread constraints",
        (
            "relax the pod's topologySpreadConstraints, or add nodes in {target} to the domains "
            "that have too few pods"
        ),
    ),
    (
        r"exceed max volume count",
        "the nodes of {target} have as many volumes attached as they can: add nodes there",
    ),
    (r"persistentvolumeclaim", "see why the claim is not bound, in the target"),
    (
        r"ResourceClaim(Template)? \S+ (not found|is being deleted)",
        "create it here, in the namespace of the pod, and it follows",
    ),
    (
        r"ResourceClaim \S+ (is used in target|has devices of this cluster)",
        (
            "wait until no pod uses the claim there, or have each pod claim devices of its own, by "
            "a ResourceClaimTemplate"
        ),
    ),
    (r"cannot allocate all claims", "add devices in the target, or claim fewer"),
    (
        r"free ports|host ports?",
        (
            "other pods have that host port on the nodes of {target}: add nodes there, or have the "
            "pod ask for no hostPort; a Service reaches it as well"
        ),
    ),
    (
        r"persistent volumes to bind|enough free storage",
        (
            "there is no volume in {target} for the pod's claim where the pod may run: there, "
            "kubectl describe pvc says more; make one, or a StorageClass that does"
        ),
    ),
    (
        r"bound to non-existent pv",
        "the volume of the pod's claim is gone in {target}: there, make the claim anew",
    ),
    (
        r"Pod's required features",
        "the nodes of {target} are too old for a field of the pod: upgrade them, or leave it out",
    ),
    (
        r"scheduler-enforced node affinity",
        (
            "the candidate scheduler of {target} has an addedAffinity in its configuration: label "
            "nodes there, or change that"
        ),
    ),
    (
        r"podchaperon/\S+, as this pod's would be named",
        "delete that PodChaperon in the target, or create this pod under another name",
    ),
)
_REFUSED: Final = r"denied (the )?request|is forbidden|is invalid|failed calling webhook"
"""What is refused, where no pattern of `_CURES` tells more."""


def unschedulable(reasons: Mapping[str, str], facts: Facts | None = None) -> tuple[str, ...]:
    """Return the cures for the reasons of targets, by name, and by what is known of the pod.

    Those of the first target come first. Waiting is always one of them, because pods are tried
    again.
    """
    left, found = whole_reasons.first(reasons)
    if facts is not None:
        left, looked_up = looked_up_cures.find(left, facts)
        found += looked_up

    left, whole = whole_reasons.take(left)
    found += whole
    for pattern, cure in _CURES:
        matching = [n for n, text in left.items() if re.search(pattern, text, re.IGNORECASE)]
        if matching:
            found.append((matching[0], cure.format(target=matching[0] or "TARGET")))

    told = "|".join(pattern for pattern, _cure in _CURES)
    other = {n: text for n, text in left.items() if not re.search(told, text, re.IGNORECASE)}
    found += [(n, whole_reasons.REFUSED) for n in other if re.search(_REFUSED, other[n])]
    order = {name: place for place, name in enumerate(reasons)}
    cures = dict.fromkeys(cure for _name, cure in sorted(found, key=lambda each: order[each[0]]))
    return (*cures, "the pod is tried again by itself when something changes that can help it")


def refused(text: str) -> tuple[str, ...]:
    """Return the cures for something that is refused while the pod runs, and tried again."""
    return (
        "change what refuses it, which the text names: a webhook, a policy or a limit",
        "it is tried again by itself, every 30 s",
    )


def unlabelled(namespace: Object | None) -> str:
    """Return why pods of a namespace are not sent: it lacks its label; "" if it has it."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    if namespace is None or objects.labels(namespace).get(label) == value:
        return ""

    return f"namespace {objects.name(namespace)} does not have the label {label}={value}"


def not_sent(why: str, facts: Facts) -> tuple[str, ...]:
    """Return the cures for a pod that others have bound to a virtual node, and that is not sent."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    if f"{label}={value}" in why:
        enable = f"kubectl label namespace {objects.namespace(facts.pod)} {label}={value}"
        return (
            (
                "keep the pod off virtual nodes: have it not tolerate their taint "
                f"{keys.PROVIDER_LABEL}, or not select them, and delete it, for its owner to "
                "replace it"
            ),
            f"or have the namespace's pods sent: {enable}",
        )

    name = facts.chosen.name if facts.chosen is not None else ""
    told = unschedulable({name: why}, facts)
    return (*told[:-1], "delete the pod, and keep it off that node, if it is not to run there")
