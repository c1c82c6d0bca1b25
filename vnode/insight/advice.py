"""Names the cures of `vnode explain` for what is wrong. Pure."""

from __future__ import annotations

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


def failing(
    failure: Failure, pod: Object, target: str, delegate: Object | None = None
) -> tuple[str, ...]:
    """Return the cures for a failing container of the proxy `pod`, or for the pod as a whole.

    The container may be the delegate's only: then what it says is to be had in the target.
    """
    spec = container_spec(pod, failure.container) or container_spec(
        delegate or {}, failure.container
    )
    logs = _logs(failure, pod, target, delegate)
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
            return _not_ready(failure, spec, logs)
        case _:
            return _ended(failure, spec, logs)


def container_spec(pod: Object, name: str) -> Object:
    """Return the spec of the container of that name; empty if the pod has none."""
    spec = objects.spec(pod)
    listed = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return next((entry for entry in listed if entry.get("name") == name), {})


def _not_ready(failure: Failure, spec: Object, logs: str) -> tuple[str, ...]:
    if not failure.container:
        return ("the controller of its readiness gates has not set their conditions to True yet",)

    compare = ", and compare that with its readinessProbe" if spec.get("readinessProbe") else ""
    return (
        f"see what the container says{compare}: {logs}",
        "until it is ready no Service sends it anything",
    )


def _ended(failure: Failure, spec: Object, logs: str) -> tuple[str, ...]:
    cures = []
    if failure.container:
        cures.append(logs)

    if failure.ended == "OOMKilled":
        limit = ((spec.get("resources") or {}).get("limits") or {}).get("memory")
        current = f", which is {limit}" if limit else ""
        cures.append(f"raise the memory limit of container {failure.container}{current}")
    elif cure := _BY_EXIT_CODE.get(failure.exit_code):
        cures.append(cure)

    return (*cures, _REPLACED) if failure.kind is FailureKind.FAILED else tuple(cures)


def _logs(failure: Failure, pod: Object, target: str, delegate: Object | None) -> str:
    """Return the command that shows the container's last output."""
    where, of = "", pod
    if delegate is not None and not container_spec(pod, failure.container):
        where, of = f" (in {target}, where the container was added)", delegate

    arguments = f"{objects.name(of)} -n {objects.namespace(of)} -c {failure.container}"
    return f"kubectl logs {arguments}" + (" --previous" if failure.is_restarted else "") + where


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
