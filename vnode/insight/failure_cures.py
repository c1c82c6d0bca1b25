"""Names the cures for failing containers and pods, by what the kubelet of their node says. Pure."""

from __future__ import annotations

import re
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import image_cures
from vnode.insight.facts import TargetFacts
from vnode.insight.failing import Failure, FailureKind

_REPLACED: Final = "a failed pod does not start again: its owner replaces it, or you delete it"
_BY_EXIT_CODE: Final[dict[int | None, str]] = {
    0: "it ends by itself: let its command run on, or make it a Job",
    126: "its command cannot be executed: compare command and args with the image",
    127: "its command was not found: compare command and args with the image",
}
_BY_REASON: Final = {
    "DeadlineExceeded": "raise activeDeadlineSeconds, of the pod or of its Job",
    "Evicted": (
        "its node ran short of what the text names: set requests and limits of the pod to what it "
        "uses"
    ),
}
_BY_TEXT: Final = (
    (
        r"ephemeral local storage usage exceeds|EmptyDir volume .* exceeds",
        (
            "raise the limit that the text names (ephemeral-storage of its containers, or "
            "sizeLimit of its emptyDir), or have it write less"
        ),
    ),
    (
        r"(Liveness|Startup) probe failed",
        (
            "its probe has it ended: have it answer, or give it more time, by initialDelaySeconds, "
            "timeoutSeconds and failureThreshold"
        ),
    ),
)
_OF_COMMANDS: Final = (
    (
        r"exec format error",
        (
            "build the image for the architecture of the nodes, or have the pod select nodes that "
            "it is built for, by kubernetes.io/arch"
        ),
    ),
    (
        "executable file not found|no such file or directory|permission denied|no command",
        "its command cannot be started, as the text says: compare command and args with the image",
    ),
)
"""What runtimes say; a container may say the same of something else."""
_UNSTARTED: Final = ("StartError", "ContainerCannotRun")
"""How containers end that have written no log."""
_KEY: Final = re.compile(
    r"couldn't find key (?P<key>\S+) in (?P<kind>ConfigMap|Secret) [^/\s]+/(?P<name>\S+)"
)
_AS_ROOT: Final = "runAsNonRoot"


def of(
    failure: Failure, pod: Object, there: TargetFacts | None, delegate: Object | None = None
) -> tuple[str, ...]:
    """Return the cures for a failing container of the proxy `pod`, or for the pod as a whole.

    The container may be the delegate's only: then what it says is to be had in the target.
    """
    spec = container_spec(pod, failure.container) or container_spec(
        delegate or {}, failure.container
    )
    target = there.name if there is not None else "its target"
    logs = _logs(failure, pod, target, delegate)
    match failure.kind:
        case FailureKind.IMAGE:
            words = {"image": str(spec.get("image", "")), "target": target}
            cure = image_cures.of(failure.text, **words, namespace=objects.namespace(pod))
            return (cure,)
        case FailureKind.CONFIGURATION:
            return (_configuration(failure, pod, target),)
        case FailureKind.NODE:
            return _node(pod, target, delegate)
        case FailureKind.NOT_READY:
            return _not_ready(failure, spec, logs)
        case _:
            return _ended(failure, spec, logs)


def _configuration(failure: Failure, pod: Object, target: str) -> str:
    namespace = objects.namespace(pod)
    if match := _KEY.search(failure.text):
        kind, name = match["kind"], match["name"]
        return (
            f"add key {match['key']} to {kind} {name} in namespace {namespace} of this cluster, "
            f"from where it follows to {target} (if following is off: add it there), or correct "
            "the pod"
        )

    if _AS_ROOT in failure.text:
        return "have the image, or the pod's securityContext.runAsUser, name a user that is not 0"

    if failure.reason == "PostStartHookError":
        return "its lifecycle.postStart fails, as the text says: correct that, or the image"

    if failure.reason == "CreateContainerConfigError":
        return "create what it names in the target's namespace, or correct the pod"

    return _by_text(failure.text, _OF_COMMANDS) or (
        f"its node in {target} cannot make the container, as the text says: correct the pod, or "
        "that node"
    )


def _by_text(text: str, known: tuple[tuple[str, str], ...]) -> str:
    """Return the cure by the words of the kubelet or runtime; "" if they tell none."""
    return next((cure for said, cure in known if re.search(said, text)), "")


def _node(pod: Object, target: str, delegate: Object | None) -> tuple[str, ...]:
    node = objects.node_name(delegate or {}) or str(objects.status(pod).get("hostIP") or "its node")
    name = node if delegate is not None else "NODE"
    return (
        f"see why the kubelet of {node} does not report: in {target}, kubectl describe node {name}",
        (
            "the pod is replaced once that cluster evicts it, by default after five minutes; a "
            f"node that is gone for good must be deleted there: kubectl delete node {name}"
        ),
    )


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
    cures, is_unstarted = [], failure.ended in _UNSTARTED
    if failure.container and not is_unstarted:
        cures.append(logs)

    if failure.ended == "OOMKilled":
        limit = ((spec.get("resources") or {}).get("limits") or {}).get("memory")
        current = f", which is {limit}" if limit else ""
        cures.append(f"raise the memory limit of container {failure.container}{current}")
    elif cure := (
        _by_text(failure.text, _OF_COMMANDS if is_unstarted else _BY_TEXT)
        or _BY_REASON.get(failure.reason)
        or _BY_EXIT_CODE.get(failure.exit_code)
    ):
        cures.append(cure)

    return (*cures, _REPLACED) if failure.kind is FailureKind.FAILED else tuple(cures)


def _logs(failure: Failure, pod: Object, target: str, delegate: Object | None) -> str:
    """Return the command that shows the container's last output."""
    where, of = "", pod
    if delegate is not None and not container_spec(pod, failure.container):
        where, of = f" (in {target}, where the container was added)", delegate

    arguments = f"{objects.name(of)} -n {objects.namespace(of)} -c {failure.container}"
    return f"kubectl logs {arguments}" + (" --previous" if failure.is_restarted else "") + where
