"""Situations of pods whose containers do not start, end, or are not ready, by what kubelets say."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.cli.situation_cases import Case, pulled, sent
from tests.unit.cli.situations import Situation, waiting
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.insight.verdicts import PodState

IMAGE: Final = "registry.example/app:1"
LOGS: Final = "kubectl logs web -n default -c main --previous"
CREATE: Final = "create what it names"
COMMAND: Final = "compare command and args with the image"


def container(state: str, name: str = "main", **detail: Any) -> Object:
    """Return the status of a container; details of its state and of the container as a whole."""
    whole: Object = {k: detail.pop(k) for k in ("ready", "started", "restartCount") if k in detail}
    last = detail.pop("last", None)
    found: Object = {"name": name, "ready": False, "restartCount": 0, **whole}
    return {**found, "state": {state: detail}, "lastState": {"terminated": last} if last else {}}


def crashed(headline: str, *cures: str, event: tuple[str, str] | None = None, **last: Any) -> Case:
    """Return the case of a container that ended like that, four times."""
    last = {"exitCode": 1, "reason": "Error", **last}
    looped = container("waiting", reason="CrashLoopBackOff", restartCount=4, last=last)
    status = {"phase": "Running", "containerStatuses": [looped]}
    text = f"container main: CrashLoopBackOff: {headline}"
    return sent(text, *cures, status=status, state=PodState.CRASHING, event=event)


def refused(reason: str, message: str, *cures: str, **more: Any) -> Case:
    """Return the case of a container that its node does not make."""
    status = waiting(reason, message)
    return sent(f"container main: {reason}: {message}", *cures, status=status, **more)


def evicted(message: str, *cures: str, unsaid: tuple[str, ...] = ()) -> Case:
    status = {"phase": "Failed", "reason": "Evicted", "message": message}
    again = "a failed pod does not start again"
    headline = f"the pod has failed: Evicted: {message}"
    return sent(headline, *cures, again, status=status, state=PodState.FAILED, unsaid=unsaid)


def secret_that_would_not_help(here: Situation) -> None:
    status = waiting("ErrImagePull", "no match for platform in manifest: not found")
    here.sent(status, imagePullSecrets=[{"name": "regcred"}])


def long_init(here: Situation) -> None:
    init = container("running", "prepare", startedAt=here.ago(600))
    status = {"phase": "Pending", "initContainerStatuses": [init], "startTime": here.ago(700)}
    here.sent(status, initContainers=[{"name": "prepare", "image": "x"}])


def long_creation(here: Situation) -> None:
    here.sent({**waiting("ContainerCreating"), "startTime": here.ago(600)})


def passed_mount(here: Situation) -> None:
    init = container("running", "prepare", startedAt=here.ago(60))
    here.sent({"phase": "Pending", "initContainerStatuses": [init]})
    here.event("FailedMount", 'MountVolume.SetUp failed for volume "cfg" : timed out')


def slow_start(here: Situation) -> None:
    status = container("running", started=False, startedAt=here.ago(600))
    here.sent({"phase": "Running", "containerStatuses": [status]})
    here.event("Unhealthy", "Startup probe failed: connection refused")


def start_in_vain(here: Situation) -> None:
    status = container("running", started=False, restartCount=3, startedAt=here.ago(20))
    here.sent({"phase": "Running", "containerStatuses": [status]})
    here.event("Unhealthy", "Startup probe failed: connection refused")


def restarted(here: Situation) -> None:
    last = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": here.ago(45)}
    status = container("running", ready=True, restartCount=9, last=last)
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    here.sent(
        {"phase": "Running", "containerStatuses": [status]},
        containers=[{"name": "main", "image": "app:1", **limits}],
    )


def without_agent(here: Situation) -> None:
    here.sent({"phase": "Running", "containerStatuses": [container("running", ready=True)]})
    lease = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": here.ago(300)}
    here.source.change(kinds.LEASES, "vnode-agent", "vnode", lambda obj: obj.update(spec=lease))


FAILING: Final[dict[str, Case]] = {
    "an image whose name is none": sent(
        "container main: InvalidImageName",
        f"correct the name of the image, {IMAGE}",
        status=waiting("InvalidImageName", "couldn't parse image name"),
        unsaid=("its registry has no",),
    ),
    "an image that is never pulled": sent(
        "container main: ErrImageNeverPull",
        f"have the pod pull {IMAGE} (imagePullPolicy IfNotPresent)",
        status=waiting("ErrImageNeverPull", "is not present with pull policy of Never"),
        unsaid=("pull secret",),
    ),
    "a disk without room for the image": pulled(
        "write /var/lib/containerd/x: no space left on device",
        "make room on the disks of the nodes of c2",
        "pull secret",
    ),
    "a registry that is asked too often": pulled(
        "toomanyrequests: You have reached your pull rate limit",
        "takes no more requests for now",
        "create secret",
    ),
    "an image of which only an Event says more": sent(
        f'container main: ImagePullBackOff: Back-off pulling image "{IMAGE}": Failed to pull image',
        "kubectl create secret docker-registry NAME -n default",
        status=waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"'),
        event=("Failed", f'Failed to pull image "{IMAGE}": failed to authorize: 401 Unauthorized'),
    ),
    "a pull secret that would not help": Case(
        secret_that_would_not_help,
        PodState.NOT_STARTING,
        "container main: ErrImagePull: no match for platform",
        (f"build {IMAGE} for the architecture",),
        ("regcred",),
    ),
    "a command that is not there": crashed(
        'StartError, exit code 128, 4 restarts: exec: "foo": executable file not found in $PATH',
        "compare command and args with the image",
        exitCode=128,
        reason="StartError",
        message='exec: "foo": executable file not found in $PATH: unknown',
    ),
    "a command for another architecture": crashed(
        "StartError, exit code 128, 4 restarts: exec /app: exec format error",
        "build the image for the architecture of the nodes",
        exitCode=128,
        reason="StartError",
        message="exec /app: exec format error",
    ),
    "a container that says why it ends": crashed(
        "Error, exit code 1, 4 restarts: open /etc/app.conf: no such file or directory",
        LOGS,
        message="open /etc/app.conf: no such file or directory",
    ),
    "a container that its livenessProbe ends": crashed(
        "Error, exit code 137 (SIGKILL), 4 restarts: Liveness probe failed: statuscode: 500",
        LOGS,
        "its probe has it ended",
        exitCode=137,
        event=("Unhealthy", "Liveness probe failed: statuscode: 500"),
    ),
    "a container that ends, and so fails its probe": crashed(
        "Error, exit code 3, 4 restarts",
        LOGS,
        exitCode=3,
        event=("Unhealthy", "Liveness probe failed: connection refused"),
    ),
    "a container without memory": crashed(
        "OOMKilled, exit code 137, 4 restarts",
        LOGS,
        "raise the memory limit of container main",
        exitCode=137,
        reason="OOMKilled",
    ),
    "a container whose runtime finds no command": refused(
        "RunContainerError", 'exec: "foo": stat foo: no such file or directory', "compare command"
    ),
    "a container that its node cannot make": refused(
        "CreateContainerError",
        'path "/data" is mounted on "/" but it is not a shared mount',
        "its node in c2 cannot make the container",
        unsaid=(CREATE,),
    ),
    "a hook that fails": refused(
        "PostStartHookError",
        "Exec lifecycle hook ([/bin/register]) failed: exited with 7",
        "its lifecycle.postStart fails",
        unsaid=(CREATE, "its node"),
    ),
    "an eviction for memory": evicted(
        "The node was low on resource: memory.", "its node ran short of what the text names"
    ),
    "an eviction for its own files": evicted(
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
        "raise the limit that the text names",
        unsaid=("its node ran short",),
    ),
    "an init container that takes long": Case(
        long_init,
        PodState.STARTING,
        "the containers start in target c2 on node worker-1: init container prepare runs, for 10m",
        ("kubectl logs web -n default -c prepare",),
    ),
    "containers that are long in coming": Case(
        long_creation,
        PodState.STARTING,
        "the containers start in target c2 on node worker-1, for 10m by now",
        ("in c2, kubectl describe pod web-",),
    ),
    "a mount that has gone well since": Case(
        passed_mount,
        PodState.STARTING,
        "the containers start in target c2 on node worker-1: init container prepare runs",
        (),
        ("MountVolume",),
    ),
    "a container that starts slowly": Case(
        slow_start,
        PodState.STARTING,
        "the pod runs in target c2; container main has not passed its startupProbe yet: Startup",
        (),
    ),
    "a container that starts in vain": Case(
        start_in_vain,
        PodState.NOT_READY,
        "container main has not passed its startupProbe, 3 restarts: Startup probe failed",
        ("kubectl logs web -n default -c main", "until it is ready"),
    ),
    "a container that was killed, and runs again": Case(
        restarted,
        PodState.RUNNING,
        "the pod runs in target c2; container main was restarted 9 times, last 45s ago after OOMK",
        (LOGS, "raise the memory limit of container main, which is 64Mi"),
    ),
    "a pod that runs while no agent does": Case(
        without_agent,
        PodState.RUNNING,
        "the pod runs in target c2; no agent of this cluster runs",
        ("start the agent of this cluster", "vnode doctor"),
    ),
}
