"""Situations of images that are not pulled and containers that are not made, by words of nodes.

Kubelets, container runtimes and registries end many sentences alike: what it is about stands
before.
"""

from __future__ import annotations

from typing import Final

from tests.unit.cli.failing_situations import COMMAND, container, crashed, evicted, refused
from tests.unit.cli.situation_cases import Case, pulled, sent
from tests.unit.cli.situations import Situation, waiting
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.insight.verdicts import PodState

AGAIN: Final = "its node tries again by itself"
REGISTRY: Final = "see that the nodes of c2 reach the registry of registry.example/app:1"
SECRET: Final = "pull secret"
CREATE: Final = "create what it names"
REJECTED: Final = "Pod was rejected: "


def unmade(reason: str, message: str, cure: str) -> Case:
    """Return the case of a container that is not made, and not for its command, nor an object."""
    return refused(reason, message, cure, unsaid=(COMMAND, CREATE))


def failed(reason: str, message: str, *cures: str) -> Case:
    """Return the case of a pod that has failed for good, as its kubelet does not take it."""
    told: Object = {"phase": "Failed", "reason": reason, "message": f"{REJECTED}{message}"}

    def make(here: Situation) -> None:
        here.sent(told)
        here.source.change(kinds.PODS, "web", "default", lambda obj: obj["status"].update(told))

    headline = f"the pod has failed: {reason}: {REJECTED}{message}"
    again = "a failed pod does not start again"
    return Case(make, PodState.FAILED, headline, (*cures, again))


def rejected(here: Situation) -> None:
    message = f"{REJECTED}Node didn't have enough resource: cpu, requested: 2000, capacity: 4000"
    here.sent({"phase": "Failed", "reason": "OutOfcpu", "message": message})


def sidecar(restarts: int) -> Object:
    """Return the status of a pod whose sidecar runs, and does not answer."""
    behind = container("running", "mesh", started=False, restartCount=restarts)
    later = container("waiting", reason="PodInitializing")
    return {
        "phase": "Pending",
        "initContainerStatuses": [behind],
        "containerStatuses": [later],
    }


def behind_a_sidecar(restarts: int, headline: str, state: PodState, *cures: str) -> Case:
    waits = "the containers in target c2 wait for mesh, which has not passed its startupProbe"
    return sent(
        f"{waits}{headline}",
        *cures,
        status=sidecar(restarts),
        state=state,
        event=("Unhealthy", "Startup probe failed: connection refused"),
        initContainers=[{"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"}],
    )


def lost_container(here: Situation) -> None:
    text = "The container could not be located when the pod was terminated"
    lost = container("terminated", reason="ContainerStatusUnknown", exitCode=137, message=text)
    here.sent({"phase": "Failed", "containerStatuses": [lost]})


RUNTIME: Final[dict[str, Case]] = {
    "a seccomp profile that the node lacks": unmade(
        "CreateContainerError",
        'cannot load seccomp profile "/var/lib/kubelet/seccomp/audit.json": open '
        "/var/lib/kubelet/seccomp/audit.json: no such file or directory",
        "put the profile that the text names onto the nodes of c2",
    ),
    "a file that is mounted where a folder is": unmade(
        "RunContainerError",
        'error mounting "/pods/cfg" to rootfs at "/etc/app.conf": not a directory: Are you trying '
        "to mount a directory onto a file (or vice-versa)?",
        "compare mountPath and subPath",
    ),
    "a path that is not there to be mounted": unmade(
        "RunContainerError",
        'error mounting "/var/x" to rootfs at "/data": no such file or directory',
        "compare mountPath and subPath",
    ),
    "a subPath that cannot be made": unmade(
        "CreateContainerConfigError",
        'failed to prepare subPath for volumeMount "data" of container "main"',
        "compare mountPath and subPath",
    ),
    "a driver of GPUs that the node lacks": unmade(
        "RunContainerError",
        "error running hook #0: nvidia-container-cli: initialization error: load library failed: "
        "libnvidia-ml.so.1: cannot open shared object file: no such file or directory",
        "see that the driver of the pod's devices and its container toolkit work on worker-1",
    ),
    "a limit below what any container takes": crashed(
        "StartError, exit code 128, 4 restarts: runc create failed: container init was OOM-killed",
        "raise the memory limit of container main",
        exitCode=128,
        reason="StartError",
        message="runc create failed: container init was OOM-killed (memory limit too low?)",
    ),
    "a kubelet that does not know the ConfigMap yet": unmade(
        "CreateContainerConfigError",
        "failed to sync configmap cache: timed out waiting for the condition",
        AGAIN,
    ),
    "a kubelet that has just started": unmade(
        "CreateContainerConfigError",
        "services have not yet been read at least once, cannot construct envvars",
        AGAIN,
    ),
    "a runtime that hangs": unmade(
        "CreateContainerError",
        'failed to reserve container name "main_web": name "main_web" is reserved for "x"',
        AGAIN,
    ),
    "a user that the image lacks": unmade(
        "CreateContainerError",
        "unable to find user app: no matching entries in passwd file",
        "name a user and a group that the image has",
    ),
    "a user by name where root is not allowed": unmade(
        "CreateContainerConfigError",
        "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is "
        "non-root",
        "give the image's user as a number",
    ),
    "a ConfigMap that is named after a profile": refused(
        "CreateContainerConfigError", 'configmap "seccomp" not found', CREATE
    ),
    "a command that crun does not find": refused(
        "CreateContainerError",
        "container create failed: executable file `foo` not found in $PATH: No such file or "
        "directory",
        COMMAND,
    ),
    "a container that its node has lost": Case(
        lost_container,
        PodState.FAILED,
        "the pod has failed: container main: ContainerStatusUnknown, exit code 137",
        ("its node has lost the container and its log", "a failed pod does not start again"),
        ("kubectl logs",),
    ),
    "an eviction of one that writes too much": evicted(
        'Container main exceeded its local ephemeral storage limit "1Gi".',
        "raise the limit that the text names",
        unsaid=("its node ran short",),
    ),
    "a sysctl that kubelets do not allow": failed(
        "SysctlForbidden",
        'forbidden sysctl: "kernel.msgmax" not allowlisted',
        "have the kubelets of c2 allow that sysctl",
    ),
    "a device plugin that has fewer devices than it said": failed(
        "UnexpectedAdmissionError",
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu",
        "see that the device plugin that the text names works on node worker-1 of c2",
    ),
    "a kubelet without room, whose pod is made anew": Case(
        rejected,
        PodState.NOT_STARTING,
        "target c2 has no place: the kubelet of node worker-1 rejected the pod (OutOfcpu)",
        ("make room in c2", "tried again by itself"),
        ("a failed pod",),
    ),
    "a sidecar that takes its time": behind_a_sidecar(
        0, " yet: Startup probe failed: connection refused", PodState.STARTING
    ),
    "a sidecar that does not answer": behind_a_sidecar(
        2,
        ", 2 restarts: Startup probe failed: connection refused",
        PodState.NOT_STARTING,
        "kubectl logs web -n default -c mesh",
    ),
    "a repository that is none, or is private": pulled(
        "failed to resolve reference: pull access denied, repository does not exist or may require "
        "authorization: server message: insufficient_scope: authorization failed",
        "correct the name of the image, registry.example/app:1; if it is right, have the pod name",
    ),
    "a pull secret whose token has expired": pulled(
        "pull access denied: 403 Forbidden: Your authorization token has expired.",
        "renew the pull secret",
    ),
    "a registry that fails": pulled(
        "unexpected status from HEAD request to https://registry.example/v2/app: 502 Bad Gateway",
        "registry fails for now",
        SECRET,
    ),
    "a registry that hangs up": pulled(
        'failed to do request: Head "https://registry.example/v2/app/manifests/1": EOF',
        REGISTRY,
        SECRET,
    ),
    "a name server that fails": pulled(
        "dial tcp: lookup registry.example on 10.0.0.10:53: server misbehaving", REGISTRY, SECRET
    ),
    "a proxy that is not reached": pulled(
        "proxyconnect tcp: dial tcp 10.0.0.1:3128: connect: connection refused",
        "reach the HTTP proxy",
        SECRET,
    ),
    "a layer that came damaged": pulled(
        "failed to extract layer sha256:aa: wrong diff id calculated on extraction",
        "came damaged",
        SECRET,
    ),
    "an image without its registry's name": pulled(
        "short name mode is enforcing, but image name app:1 returns ambiguous list",
        "name the registry",
        SECRET,
    ),
    "an image that nobody has signed": sent(
        "container main: SignatureValidationFailed",
        "sign registry.example/app:1",
        status=waiting("SignatureValidationFailed", "A signature was required, but none exists"),
        unsaid=(SECRET,),
    ),
}
