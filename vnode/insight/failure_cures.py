"""Names the cures for failing containers and pods, by what the kubelet of their node says. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import container_cures, image_cures
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
    "ContainerStatusUnknown": (
        "its node has lost the container and its log, as after a restart of the machine: in "
        "{target}, kubectl describe node {node} says more"
    ),
    "SysctlForbidden": (
        "have the kubelets of {target} allow that sysctl (allowedUnsafeSysctls), or leave it out"
    ),
    "AppArmor": (
        "put that profile onto the nodes of {target}, or have the pod name one that they have"
    ),
    "TopologyAffinityError": (
        "ask for what fits on one NUMA node of a machine in {target}, or have its Topology Manager "
        "be less strict"
    ),
    "UnexpectedAdmissionError": (
        "see that the device plugin that the text names works on node {node} of {target}"
    ),
}
_BY_TEXT: Final = (
    (
        (
            r"ephemeral local storage usage exceeds|EmptyDir volume .* exceeds"
            r"|exceeded its local ephemeral storage limit"
        ),
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
_UNSTARTED: Final = ("StartError", "ContainerCannotRun")
"""How containers end that did not start."""
_WITHOUT_LOG: Final = (*_UNSTARTED, "ContainerStatusUnknown")


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
            words = _words(failure, pod, target, delegate)
            return (container_cures.of(failure.reason, failure.text, words),)
        case FailureKind.NODE:
            return _node(pod, target, delegate)
        case FailureKind.NOT_READY:
            return _not_ready(failure, spec, logs)
        case _:
            return _ended(failure, _words(failure, pod, target, delegate), logs)


def _words(failure: Failure, pod: Object, target: str, delegate: Object | None) -> dict[str, str]:
    """Return what cures of a container name."""
    spec = container_spec(pod, failure.container)
    limit = ((spec.get("resources") or {}).get("limits") or {}).get("memory")
    return {
        "target": target,
        "node": objects.node_name(delegate or {}) or "NODE",
        "namespace": objects.namespace(pod),
        "container": failure.container,
        "limit": f", which is {limit}" if limit else "",
    }


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


def _ended(failure: Failure, words: Mapping[str, str], logs: str) -> tuple[str, ...]:
    cures = [logs] if failure.container and failure.ended not in _WITHOUT_LOG else []
    if cure := _of_end(failure, words):
        cures.append(cure)

    return (*cures, _REPLACED) if failure.kind is FailureKind.FAILED else tuple(cures)


def _of_end(failure: Failure, words: Mapping[str, str]) -> str:
    """Return the cure of how a container, or a pod as a whole, ended; "" if none is known."""
    if failure.ended == "OOMKilled":
        return "raise the memory limit of container {container}{limit}".format(**words)

    if failure.ended in _UNSTARTED:
        return container_cures.by_text(failure.text, words)

    told = (cure for said, cure in _BY_TEXT if re.search(said, failure.text))
    by_reason = _BY_REASON.get(failure.reason) or _BY_REASON.get(failure.ended, "")
    return next(told, "") or by_reason.format(**words) or _BY_EXIT_CODE.get(failure.exit_code, "")


def _logs(failure: Failure, pod: Object, target: str, delegate: Object | None) -> str:
    """Return the command that shows the container's last output."""
    where, of = "", pod
    if delegate is not None and not container_spec(pod, failure.container):
        where, of = f" (in {target}, where the container was added)", delegate

    arguments = f"{objects.name(of)} -n {objects.namespace(of)} -c {failure.container}"
    return f"kubectl logs {arguments}" + (" --previous" if failure.is_restarted else "") + where
