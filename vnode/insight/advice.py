"""Names the cures of `vnode explain` for what is wrong. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import identity, keys, kinds, objects, spelling
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.insight.facts import TargetFacts

AGENT: Final = (
    "start the agent of this cluster (vnode agent, or its Deployment)",
    "vnode doctor says what keeps it from working",
)


def not_elected(
    pod: Object, namespace: Object | None, made_by: Object | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return why a pod is not a proxy pod, and how to have its replacement elected.

    `made_by` is its Deployment or other owner.
    """
    annotations, name = objects.annotations(pod), objects.namespace(pod)
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    owner = (objects.controller_reference(pod) or {}).get("kind")
    again = "create the pod again: it is elected when it is created, not later"
    if keys.NO_ELECT in annotations:
        return f"the pod opts out by the annotation {keys.NO_ELECT}", ()

    if owner == "DaemonSet":
        return "pods of a DaemonSet are never sent to targets", ()

    if owner == "Node":
        return "it is a static pod of its node, and these are never sent to targets", ()

    if owner == kinds.POD_CHAPERONS.kind:
        cluster = objects.labels(pod).get(keys.PARENT_CLUSTER_NAME) or "another cluster"
        parent = objects.split_key(identity.parent_key(pod))
        return (
            f"it is the delegate pod of pod/{objects.join_key(*parent)} in cluster {cluster}",
            (f"in that cluster: vnode explain {parent[1]} -n {parent[0]}",),
        )

    elected = keys.ELECT in annotations or keys.ELECT in objects.annotations(namespace or {})
    if not elected and (meant := spelling.meant_as_election(pod)):
        return f"nothing elects it: {meant}", (f'annotate it with {keys.ELECT}: ""', again)

    if not elected and keys.ELECT in objects.annotations(made_by or {}):
        kind = str((made_by or {}).get("kind") or owner)
        command = f"kubectl edit {kind.lower()} {objects.name(made_by or {})} -n {name}"
        lacks_label = namespace is not None and objects.labels(namespace).get(label) != value
        return (
            f"nothing elects it: the annotation is on its {kind}, not on the template of its pods",
            (
                f"move the annotation into spec.template.metadata.annotations: {command}",
                *([f"kubectl label namespace {name} {label}={value}"] if lacks_label else ()),
            ),
        )

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
        by_itself = keys.ELECT in annotations
        asks = "it is annotated, but its namespace" if by_itself else "its namespace elects it, but"
        return (
            f"{asks} does not have the label {label}={value}",
            (f"kubectl label namespace {name} {label}={value}", again),
        )

    asks = "it is annotated" if keys.ELECT in annotations else "its namespace elects it"
    return (
        f"{asks}, but it was not elected when it was created",
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


def target_agent(target: str) -> tuple[str, ...]:
    """Return the cure where the target's own agent does nothing."""
    return (f"start the agent in {target}: vnode doctor --target FILE tells whether it runs",)


def stuck(target: TargetKey, pod: Object) -> tuple[str, ...]:
    """Return the cures where a target is unreachable while its pod is terminating."""
    name, namespace = objects.name(pod), objects.namespace(pod)
    return (
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
