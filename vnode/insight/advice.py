"""What to do, by what is wrong: the cures of `vnode explain`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from vnode.api import keys, objects, spelling
from vnode.api.objects import Object
from vnode.insight import words

AGENT: Final = (
    "start the agent of this cluster (vnode agent, or its Deployment)",
    "vnode doctor says what keeps it from working",
)

_IMAGE: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_CONFIGURATION: Final = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_CRASHING: Final = ("CrashLoopBackOff", "StartError")

_CURES: Final = (
    (r"Insufficient|Too many pods", "add nodes in the target, or lower the pod's requests"),
    (r"exceeded quota", "raise the ResourceQuota of the namespace in the target"),
    (r"violates PodSecurity", "change the pod, or the Pod Security label in the target"),
    (
        r"serviceaccount|service account",
        "create the service account, or name another one, in the target",
    ),
    (
        r"no answer for",
        (
            "see that the target's agent and its candidate scheduler run, and its admission "
            "webhooks: vnode doctor --target FILE"
        ),
    ),
    (
        r"did not match the pod's node affinity",
        (
            "compare its constraints with the labels of virtual nodes: kubectl get nodes "
            f"-l {keys.PROVIDER_LABEL}={keys.PROVIDER} --show-labels"
        ),
    ),
    (
        r"didn't match Pod's node affinity",
        (
            "compare its constraints with the labels of the nodes in the target: there, kubectl "
            "get nodes --show-labels"
        ),
    ),
    (
        r"untolerated taint|unschedulable|SchedulingDisabled|cordoned",
        "vnode uncordon TARGET, or a toleration for the taints of the target's nodes",
    ),
    (r"takes only pods of namespace", "connect this namespace, or use a ClusterTarget"),
    (r"cannot be reached|not connected|unreachable", "vnode doctor says what is in the way"),
    (r"namespaces .* not found", "create the namespace in the target"),
    (r"persistentvolumeclaim", "create the claim in the target"),
    (r"free ports|host ports?", "the host port is taken on the target's nodes"),
)


def unschedulable(words: Iterable[str]) -> tuple[str, ...]:
    """The cures for what targets said; waiting is one, because pods are tried again."""
    text = " ".join(words)
    found = [cure for pattern, cure in _CURES if re.search(pattern, text, re.IGNORECASE)]
    return (*found, "the pod is tried again by itself when something changes that can help it")


def not_elected(pod: Object, namespace: Object | None) -> tuple[str, tuple[str, ...]]:
    """Why a pod is no proxy, and how the next one would be."""
    notes, name = objects.annotations(pod), objects.namespace(pod)
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    owner = (objects.controller_reference(pod) or {}).get("kind")
    again = "create the pod again: it is elected when it is created, not later"
    if keys.NO_ELECT in notes:
        return f"the pod opts out by the annotation {keys.NO_ELECT}", ()

    if owner == "DaemonSet":
        return "pods of a DaemonSet are never sent to targets", ()

    elected = keys.ELECT in notes or keys.ELECT in objects.annotations(namespace or {})
    if not elected and (meant := spelling.meant_as_election(pod)):
        return f"nothing elects it: {meant}", (f'annotate it with {keys.ELECT}: ""', again)

    if not elected:
        return (
            "nothing asks for the pod to run in a target: it is an ordinary pod of this cluster",
            (
                (
                    f'annotate it (for a Deployment: its template) with {keys.ELECT}: "", or its '
                    f"namespace: kubectl annotate namespace {name} {keys.ELECT}="
                ),
                again,
            ),
        )

    if namespace is not None and objects.labels(namespace).get(label) != value:
        return (
            f"it is annotated, but its namespace does not have the label {label}={value}",
            (f"kubectl label namespace {name} {label}={value}", again),
        )

    return (
        "it is annotated, but was not elected when it was created",
        (
            "see that the webhook works: vnode doctor",
            again,
        ),
    )


def missing(lacking: Iterable[str], namespace: str, target: str) -> list[str]:
    """How to bring what the target lacks."""
    return [
        f"create {what} in namespace {namespace} of {target}; the kubelet tries again by itself"
        for what in lacking
    ]


def container_trouble(pod: Object) -> tuple[str, tuple[str, ...]] | None:
    """The first container that cannot start: what is said of it, and the cure."""
    for container in words.containers(pod):
        name, detail = words.state(container)
        reason, message = str(detail.get("reason") or ""), str(detail.get("message") or "")
        if name != "waiting":
            continue

        what = f"container {container.get('name')}: {reason}" + (f": {message}" if message else "")
        if reason in _IMAGE:
            return what, (
                (
                    f"see that the image {container.get('image')} exists, that the target's nodes "
                    "reach its registry, and that the pull secret is in the target's namespace"
                ),
            )

        if reason in _CONFIGURATION:
            return what, ("create what it names in the target's namespace, or correct the pod",)

        if reason in _CRASHING:
            return what, (f"kubectl logs POD -c {container.get('name')} --previous",)

    return None


def target_agent(target: str) -> tuple[str, ...]:
    """When the target's own agent does nothing."""
    return (f"start the agent in {target}: vnode doctor --target FILE tells whether it runs",)


def stuck(why: str, target: str, pod: Object) -> tuple[str, ...]:
    """When a target is away while a pod is to end."""
    name, namespace = objects.name(pod), objects.namespace(pod)
    return (
        why,
        "the pod goes when the target is back",
        f"if the target is gone for good: vnode disconnect {target}",
        (
            "by force, and only if nothing runs any more: kubectl patch pod "
            f'{name} -n {namespace} --type merge --patch \'{{"metadata":{{"finalizers":null}}}}\''
        ),
    )


def delegate_lingers(target: str, delegate: Object, *, asked: bool) -> tuple[str, ...]:
    """When a delegate outlives its deletion."""
    name, namespace = objects.name(delegate), objects.namespace(delegate)
    if not asked:
        return (f"nobody has deleted the delegate yet: see that the agents run, also in {target}",)

    node = objects.spec(delegate).get("nodeName") or "its node"
    return (
        (
            f"see why {node} in {target} does not end it: kubectl describe pod {name} -n "
            f"{namespace} (there); a node that is gone for good must be deleted"
        ),
    )
