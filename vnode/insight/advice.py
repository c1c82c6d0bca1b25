"""Names the cures of `vnode explain` for what is wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vnode.api import keys, objects, spelling
from vnode.api.objects import Object
from vnode.insight.facts import TargetFacts
from vnode.insight.failing import Failure, FailureKind

AGENT: Final = (
    "start the agent of this cluster (vnode agent, or its Deployment)",
    "vnode doctor says what keeps it from working",
)

_REPLACED: Final = "a failed pod does not start again: its owner replaces it, or you delete it"
_BY_EXIT_CODE: Final[dict[int | None, str]] = {
    0: "it ends by itself: let its command run on, or make it a Job",
    126: "its command cannot be executed: compare command and args with the image",
    127: "its command was not found: compare command and args with the image",
}

_WHOLE_REASONS: Final = (
    (
        r"the agent may not make tokens:.*? of the Target",
        (
            "give the agent the right to make tokens, by the command that the reason names, or "
            "have the Target not ask for them"
        ),
    ),
    (
        r"Secret \S+ is the token of service account \S+, which would end in a variable",
        "mount the Secret as a volume, whole, or create one of that name in the target",
    ),
    (
        r"Secret \S+ is the token of service account \S+",
        (
            "have the target ask for tokens of the source, run the pod as that service account, or "
            "create a Secret of that name in the target"
        ),
    ),
    (
        r"Secret \S+ holds no valid token of service account \S+",
        "see that the service account exists, and create the Secret again",
    ),
)
"""Reasons that are matched and removed first, since patterns of `_CURES` match parts of them."""

_CURES: Final = (
    (r"Insufficient|Too many pods", "add nodes in the target, or lower the pod's requests"),
    (r"exceeded quota", "raise the ResourceQuota of the namespace in the target"),
    (
        r"failed quota: \S+ must specify",
        "set them in the pod, or make a LimitRange with defaults in the target's namespace",
    ),
    (
        r"usage per (Container|Pod)|max limit to request ratio",
        "change the pod's requests and limits, or the LimitRange of the namespace in the target",
    ),
    (r"violates PodSecurity", "change the pod, or the Pod Security label in the target"),
    (
        r"serviceaccount|service account",
        "create the service account, or name another one, in the target",
    ),
    (
        r"(Runtime|Priority)Class",
        "create the class in the target, or name one that is there, in the pod",
    ),
    (
        r"no answer for",
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
        r"node\(s\) didn't match Pod's node affinity",
        (
            "compare its constraints with the labels of the nodes in the target: there, kubectl "
            "get nodes --show-labels"
        ),
    ),
    (r"the virtual node was unschedulable", "vnode uncordon {target}"),
    (
        r"at its maximum of \d+ by",
        (
            "raise a maxReplicas of the policy, give it another cluster, or have the workload run "
            "fewer pods"
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
        r"node\(s\) (were unschedulable|had untolerated taint)",
        (
            "uncordon the nodes of {target} (there: kubectl uncordon NODE), or give the pod a "
            "toleration for their taints"
        ),
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
    (r"persistentvolumeclaim", "create the claim in the target"),
    (r"free ports|host ports?", "the host port is taken on the target's nodes"),
)


def unschedulable(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Return the cures for the reasons of targets, by name.

    Waiting is always one of them, because pods are tried again.
    """
    left, found = dict(reasons), []
    for pattern, cure in _WHOLE_REASONS:
        if any(re.search(pattern, text) for text in left.values()):
            left = {name: re.sub(pattern, "", text) for name, text in left.items()}
            found.append(cure)

    for pattern, cure in _CURES:
        matching = [n for n, text in left.items() if re.search(pattern, text, re.IGNORECASE)]
        if matching:
            found.append(cure.format(target=matching[0] or "TARGET"))

    return (*found, "the pod is tried again by itself when something changes that can help it")


def not_elected(pod: Object, namespace: Object | None) -> tuple[str, tuple[str, ...]]:
    """Return why a pod is not a proxy pod, and how to have its replacement elected."""
    annotations, name = objects.annotations(pod), objects.namespace(pod)
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    owner = (objects.controller_reference(pod) or {}).get("kind")
    again = "create the pod again: it is elected when it is created, not later"
    if keys.NO_ELECT in annotations:
        return f"the pod opts out by the annotation {keys.NO_ELECT}", ()

    if owner == "DaemonSet":
        return "pods of a DaemonSet are never sent to targets", ()

    elected = keys.ELECT in annotations or keys.ELECT in objects.annotations(namespace or {})
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


def missing(target: TargetFacts, pod: Object) -> tuple[str, ...]:
    """Return how to provide what the target lacks: objects follow from this cluster, if present."""
    name, namespace = objects.name(pod), objects.namespace(pod)
    absent = [what for what in target.missing if what in target.missing_in_source]
    not_copied = [what for what in target.missing if what not in target.missing_in_source]
    return (
        *(
            f"create {what} in namespace {namespace} of this cluster, from where it follows to "
            f"{target.name} (if following is off: create it there)"
            for what in absent
        ),
        *(
            f"{what} has not followed to {target.name}: kubectl describe pod {name} -n {namespace} "
            "says why (if following is off: create it there)"
            for what in not_copied
        ),
    )


def failing(failure: Failure, pod: Object, target: str) -> tuple[str, ...]:
    """Return the cures for a failing container of the proxy `pod`, or for the pod as a whole."""
    spec = container_spec(pod, failure.container)
    match failure.kind:
        case FailureKind.IMAGE:
            return (
                (
                    f"see that the image {spec.get('image', '')} exists, that the nodes of "
                    f"{target} reach its registry, and that the pull secret is in namespace "
                    f"{objects.namespace(pod)} there"
                ),
            )
        case FailureKind.CONFIGURATION:
            return ("create what it names in the target's namespace, or correct the pod",)
        case FailureKind.NOT_READY:
            return _not_ready(failure, pod)
        case _:
            return _ended(failure, spec, pod)


def container_spec(pod: Object, name: str) -> Object:
    """Return the spec of the container of that name; empty if the pod has none."""
    spec = objects.spec(pod)
    listed = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return next((entry for entry in listed if entry.get("name") == name), {})


def _not_ready(failure: Failure, pod: Object) -> tuple[str, ...]:
    if not failure.container:
        return ("the controller of its readiness gates has not set their conditions to True yet",)

    probe = container_spec(pod, failure.container).get("readinessProbe")
    compare = ", and compare that with its readinessProbe" if probe else ""
    return (
        f"see what the container says{compare}: {_logs(failure, pod)}",
        "until it is ready no Service sends it anything",
    )


def _ended(failure: Failure, spec: Object, pod: Object) -> tuple[str, ...]:
    cures = []
    if failure.container:
        cures.append(_logs(failure, pod))

    if failure.ended == "OOMKilled":
        limit = ((spec.get("resources") or {}).get("limits") or {}).get("memory")
        current = f", which is {limit}" if limit else ""
        cures.append(f"raise the memory limit of container {failure.container}{current}")
    elif cure := _BY_EXIT_CODE.get(failure.exit_code):
        cures.append(cure)

    return (*cures, _REPLACED) if failure.kind is FailureKind.FAILED else tuple(cures)


def _logs(failure: Failure, pod: Object) -> str:
    """Return the command that shows the container's last output."""
    arguments = f"{objects.name(pod)} -n {objects.namespace(pod)} -c {failure.container}"
    return f"kubectl logs {arguments}" + (" --previous" if failure.is_restarted else "")


def target_agent(target: str) -> tuple[str, ...]:
    """Return the cure where the target's own agent does nothing."""
    return (f"start the agent in {target}: vnode doctor --target FILE tells whether it runs",)


def stuck(why: str, target: str, pod: Object) -> tuple[str, ...]:
    """Return the cures where a target is unreachable while its pod is terminating."""
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
    """Return the cure where a delegate is still there after its grace period.

    `asked` says that it has been deleted.
    """
    name, namespace = objects.name(delegate), objects.namespace(delegate)
    if not asked:
        return (
            f"the delegate has not been deleted yet: see that the agents run, also in {target}",
        )

    node = objects.node_name(delegate) or "its node"
    return (
        (
            f"see why {node} in {target} does not end it: kubectl describe pod {name} -n "
            f"{namespace} (there); a node that is gone for good must be deleted"
        ),
    )
