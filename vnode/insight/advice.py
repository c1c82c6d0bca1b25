"""Names the cures of `vnode explain` for what is wrong. Pure."""

from __future__ import annotations

from typing import Final, TypeAlias

from vnode.api import identity, keys, kinds, objects, spelling
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.insight.facts import TargetFacts

AGENT: Final = (
    "start the agent of this cluster (vnode agent, or its Deployment)",
    "vnode doctor says what keeps it from working",
)
_AGAIN: Final = "create the pod again: it is elected when it is created, not later"
Advice: TypeAlias = tuple[str, tuple[str, ...]]
"""Why something is so, and what to do about it."""


def not_elected(pod: Object, namespace: Object | None, made_by: Object | None = None) -> Advice:
    """Return why a pod is not a proxy pod, and how to have its replacement elected.

    `made_by` is its Deployment or other owner.
    """
    if (never := _never_elected(pod)) is not None:
        return never

    if keys.ELECT in objects.annotations(pod) or keys.ELECT in objects.annotations(namespace or {}):
        return _elected_in_vain(pod, namespace)

    return _elected_by_nothing(pod, namespace, made_by or {})


def _never_elected(pod: Object) -> Advice | None:
    """Return why no pod of its sort is elected, None if such pods are."""
    owner = (objects.controller_reference(pod) or {}).get("kind")
    if keys.NO_ELECT in objects.annotations(pod):
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

    return None


def _elected_by_nothing(pod: Object, namespace: Object | None, made_by: Object) -> Advice:
    name = objects.namespace(pod)
    if meant := spelling.meant_as_election(pod):
        return f"nothing elects it: {meant}", (f'annotate it with {keys.ELECT}: ""', _AGAIN)

    if keys.ELECT in objects.annotations(made_by):
        kind = str(made_by.get("kind") or (objects.controller_reference(pod) or {}).get("kind"))
        command = f"kubectl edit {kind.lower()} {objects.name(made_by)} -n {name}"
        lacks_label = namespace is not None and _lacks_label(namespace)
        return (
            f"nothing elects it: the annotation is on its {kind}, not on the template of its pods",
            (
                f"move the annotation into spec.template.metadata.annotations: {command}",
                *((_label_command(name),) if lacks_label else ()),
            ),
        )

    annotate = (
        f'annotate it (for a Deployment: its template) with {keys.ELECT}: "", or its '
        f"namespace: kubectl annotate namespace {name} {keys.ELECT}="
    )
    return (
        "nothing asks for the pod to run in a target: it is an ordinary pod of this cluster",
        (annotate, _AGAIN),
    )


def _elected_in_vain(pod: Object, namespace: Object | None) -> Advice:
    by_itself = keys.ELECT in objects.annotations(pod)
    if namespace is not None and _lacks_label(namespace):
        asks = "it is annotated, but its namespace" if by_itself else "its namespace elects it, but"
        label, value = keys.WEBHOOK_NAMESPACE_LABEL
        return (
            f"{asks} does not have the label {label}={value}",
            (_label_command(objects.namespace(pod)), _AGAIN),
        )

    asks = "it is annotated" if by_itself else "its namespace elects it"
    return (
        f"{asks}, but it was not elected when it was created",
        ("see that the webhook works: vnode doctor", _AGAIN),
    )


def _lacks_label(namespace: Object) -> bool:
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    return objects.labels(namespace).get(label) != value


def _label_command(namespace: str) -> str:
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    return f"kubectl label namespace {namespace} {label}={value}"


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
