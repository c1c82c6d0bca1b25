"""Thirty situations that support engineers meet: the cause first, its cure, and nothing false.

Each is made in two clusters in memory, and scored by what `vnode explain web` says under "Now" and
"What to do": how it begins, a part of each cure in their order, and words that must not be there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pytest

from tests.unit.cli.explained_pods import NODE
from tests.unit.cli.situations import Situation, a_target, waiting
from vnode.api import keys, kinds, scheduler_silence
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.insight.verdicts import PodState

pytestmark = pytest.mark.looptime

FORBIDDEN: Final = 'pods "web-x" is forbidden: '
AGAIN: Final = "tried again by itself"


class Case(NamedTuple):
    """How a situation is made, and what must, and must not, be said of it."""

    make: Callable[[Situation], None]
    state: PodState
    headline: str
    cures: tuple[str, ...]
    unsaid: tuple[str, ...] = ()


def nowhere(reason: str, *cures: str, unsaid: tuple[str, ...] = (), **spec: Any) -> Case:
    """Return the case of a pod that its only target does not take."""

    def make(here: Situation) -> None:
        here.pod(f"0/1 targets: c2: {reason}", **spec)

    told = (*cures, AGAIN)
    return Case(make, PodState.UNSCHEDULABLE, f"c2: {reason}", told, unsaid)


def nodes(reason: str, *cures: str, **more: Any) -> Case:
    """Return the case of a pod that no node of its only target takes."""
    return nowhere(f"0/3 nodes are available: 3 {reason}", *cures, **more)


def unready(reason: str, message: str, *cures: str, unsaid: tuple[str, ...] = ()) -> Case:
    """Return the case of the only Target that is not ready."""

    def make(here: Situation) -> None:
        here.source.change(
            kinds.TARGETS,
            "c2",
            "default",
            lambda obj: obj["status"].update(
                a_target(status="False", reason=reason, message=message)["status"]
            ),
        )
        here.pod()

    return Case(make, PodState.UNREACHABLE, f"target c2 is not ready: {message}", cures, unsaid)


def sent(
    headline: str,
    *cures: str,
    status: Object | None = None,
    event: tuple[str, str] | None = None,
    state: PodState = PodState.NOT_STARTING,
    unsaid: tuple[str, ...] = (),
    **more: Any,
) -> Case:
    """Return the case of a pod that is in c2, and does not run there."""

    def make(here: Situation) -> None:
        here.sent(status, **more)
        if event:
            here.event(*event)

    return Case(make, state, headline, cures, unsaid)


def pulled(message: str, cure: str, *unsaid: str) -> Case:
    status = waiting("ErrImagePull", message)
    return sent("container main: ErrImagePull", cure, status=status, unsaid=unsaid)


def ordinary(here: Situation, annotations: dict[str, str], owner: Object | None = None) -> None:
    """Have a pod that was not elected, of a Deployment that asks for it."""
    metadata: Object = {"name": "web", "namespace": "default", "annotations": annotations}
    if owner is not None:
        metadata["labels"] = {"pod-template-hash": "abc"}
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "u"}
            | {"controller": True}
        ]
        here.source.add(kinds.DEPLOYMENTS, owner)

    here.source.add(kinds.PODS, {"metadata": metadata, "spec": {}, "status": {"phase": "Running"}})


def annotated_deployment(here: Situation) -> None:
    metadata = {"name": "web", "namespace": "default", "annotations": {keys.ELECT: ""}}
    ordinary(here, {}, {"metadata": metadata, "spec": {"replicas": 1}})


def without_pull_secret(here: Situation) -> None:
    status = waiting("ImagePullBackOff", 'Back-off pulling image "registry.example/app:1"')
    here.sent(status, imagePullSecrets=[{"name": "regcred"}])


def secret_that_did_not_follow(here: Situation) -> None:
    here.here(kinds.SECRETS, "db")
    variable = {"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "p"}}}
    here.sent(
        waiting("CreateContainerConfigError", 'secret "db" not found'),
        containers=[{"name": "main", "image": "app:1", "env": [variable]}],
    )


def gated(name: str) -> Callable[[Situation], None]:
    return lambda here: here.pod(schedulingGates=[{"name": name}])


def gang(line: str) -> Callable[[Situation], None]:
    return lambda here: here.pod(line, annotations={keys.GANG: "ring"})


def agent_gone(here: Situation) -> None:
    here.pod()
    lease = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": here.ago(300)}
    here.source.change(kinds.LEASES, "vnode-agent", "vnode", lambda obj: obj.update(spec=lease))


def kept_by_finalizer(here: Situation) -> None:
    here.pod(node=NODE)
    here.source.change(
        kinds.PODS,
        "web",
        "default",
        lambda obj: obj["metadata"].update(
            deletionTimestamp=here.ago(90), finalizers=["batch.example.com/tracked"]
        ),
    )


def silent_node(here: Situation) -> None:
    running = {"name": "main", "ready": True, "state": {"running": {"startedAt": here.ago(600)}}}
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": here.ago(90)}
    here.sent({"phase": "Running", "conditions": [ready], "containerStatuses": [running]})


def two_targets(here: Situation) -> None:
    here.source.add(kinds.TARGETS, a_target("c3"))
    here.pod(
        "0/2 targets: c2: planned elsewhere by placementpolicy/even: 0 of 2 here; c3: didn't match "
        "Pod's node affinity/selector"
    )


def nobody_answers(
    here: Situation,
    reason: str = "NoAnswer",
    message: str = "a pod has had no answer for 30 s, nor has any since",
) -> None:
    """Have a Target that is connected, and starts no pods."""
    target = a_target(status="False", reason=reason, message=message)
    target["status"]["conditions"].append({"type": "Connected", "status": "True"})
    here.source.change(kinds.TARGETS, "c2", "default", lambda obj: obj.update(target))


def fresh_pod_that_nobody_answers(here: Situation) -> None:
    nobody_answers(here)
    here.pod()
    here.chaperon({})


def fresh_pod_of_a_dead_scheduler(here: Situation) -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    nobody_answers(here, scheduler_silence.REASON, scheduler_silence.described(since))
    here.pod()
    here.chaperon({})


def running_pod_of_a_dead_scheduler(here: Situation) -> None:
    nobody_answers(here)
    running = {"name": "main", "ready": True, "state": {"running": {"startedAt": here.ago(60)}}}
    here.sent({"phase": "Running", "containerStatuses": [running]})


CLAIM: Final = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
COMMON: Final = ("vnode uncordon", "add nodes")
CASES: Final = {
    "a quota of the target": nowhere(
        f"{FORBIDDEN}exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5",
        "kubectl edit resourcequota team -n default",
        unsaid=("the text names", "in this cluster"),
    ),
    "a quota of the target that is known before": nowhere(
        "no room in ResourceQuota team for requests.cpu 1, and 3 of 3 are used",
        "raise ResourceQuota team of namespace default in c2",
    ),
    "no service account in the target": nowhere(
        f"{FORBIDDEN}error looking up service account default/builder: serviceaccount "
        '"builder" not found',
        "kubectl create serviceaccount builder -n default",
        unsaid=("the text names",),
    ),
    "PodSecurity of the target": nowhere(
        f'{FORBIDDEN}violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
        "change the pod, or the Pod Security label",
        unsaid=("the text names",),
    ),
    "no such namespace in the target": nowhere(
        'namespaces "default" not found', "kubectl create namespace default (in c2)"
    ),
    "no such PriorityClass": nowhere(
        'PriorityClass "urgent" not found: create it in the target',
        "create PriorityClass urgent in c2, or have the pod name one that is there, or map it",
    ),
    "no such RuntimeClass": nowhere(
        'RuntimeClass "gvisor" not found: create it in the target',
        "create RuntimeClass gvisor in c2, or have the pod name one that is there",
        unsaid=("map it",),
    ),
    "too large for any node": nowhere(
        "Insufficient cpu on any one node (the largest has 4 free)",
        "add nodes in the target that are large enough, or lower the pod's requests",
    ),
    "a model of GPU that is not there": nowhere(
        "no node has nvidia.com/gpu.product=H100",
        "labels of the nodes in the target",
        unsaid=COMMON,
    ),
    "a volume in another zone": nodes(
        "node(s) had volume node affinity conflict",
        "kubectl get pvc data -n default",
        volumes=CLAIM,
        unsaid=("toleration", "create PersistentVolumeClaim"),
    ),
    "a volume of other nodes": nodes(
        "node(s) didn't match PersistentVolume's node affinity",
        "the pod's volume is bound to other nodes of c2",
        volumes=CLAIM,
        unsaid=("compare its constraints",),
    ),
    "anti-affinity among nodes of the target": nodes(
        "node(s) didn't match pod anti-affinity rules",
        "relax the pod's affinity between pods, or add nodes in c2",
        unsaid=("connect a target",),
    ),
    "spread among nodes of the target": nodes(
        "node(s) didn't match pod topology spread constraints",
        "relax the pod's topologySpreadConstraints, or add nodes in c2",
        unsaid=("connect a target",),
    ),
    "no claim of devices": nowhere(
        'ResourceClaim "gpu" not found',
        "create ResourceClaim gpu in namespace default of this cluster",
    ),
    "a policy whose clusters leave all targets out": nowhere(
        "didn't match placementpolicy/eu-only",
        "kubectl describe placementpolicy/eu-only -n default",
    ),
    "a policy against the pod's own constraints": Case(
        two_targets,
        PodState.UNSCHEDULABLE,
        "c2: planned elsewhere by placementpolicy/even",
        (
            "placementpolicy/even and the pod's own constraints want different targets",
            "compare its constraints",
            AGAIN,
        ),
    ),
    "a token that has expired": unready(
        "Unauthorized",
        "the target does not accept the credentials (expired or revoked?): run vnode connect, or "
        "put a new kubeconfig into the Secret",
        "vnode connect --source FILE --target FILE --name c2",
        "vnode doctor checks both sides",
        unsaid=("start the agent", AGAIN),
    ),
    "another authority": unready(
        "Unreachable",
        "the target's certificate is not one that the authority in its kubeconfig vouches for",
        "vnode connect --source FILE --target FILE --name c2",
        "vnode doctor checks both sides",
        unsaid=(AGAIN,),
    ),
    "an API server that is down": unready(
        "Unreachable",
        "the target cannot be reached: refused; see that its API server runs, and that the "
        "kubeconfig has an address",
        "vnode doctor checks both sides",
        unsaid=("vnode connect", AGAIN),
    ),
    "no Source": unready(
        "Forbidden",
        "the target refuses: podchaperons is forbidden; create a Source there in namespace "
        "'default' for this user or service account (vnode connect does)",
        "vnode doctor checks both sides",
    ),
    "a target that starts nothing": Case(
        fresh_pod_that_nobody_answers,
        PodState.UNREACHABLE,
        "target c2 is not ready: a pod has had no answer for 30 s",
        ("vnode doctor checks both sides",),
    ),
    "a target that says that its scheduler is dead": Case(
        fresh_pod_of_a_dead_scheduler,
        PodState.UNREACHABLE,
        "target c2 is not ready: the target's candidate scheduler does not run: it has not renewed "
        "its Lease since 2026-01-01T00:00:00Z",
        ("vnode doctor checks both sides",),
    ),
    "a pod that runs where nothing else starts": Case(
        running_pod_of_a_dead_scheduler,
        PodState.RUNNING,
        "the pod runs in target c2",
        (),
        ("not ready",),
    ),
    "a gate of Kueue": Case(
        gated("kueue.x-k8s.io/admission"),
        PodState.GATED,
        "the pod waits until its scheduling gates are removed: kueue.x-k8s.io/admission",
        ("kubectl get workloads -n default",),
    ),
    "a gate of somebody else": Case(
        gated("example.com/later"),
        PodState.GATED,
        "the pod waits until its scheduling gates are removed: example.com/later",
        ("example.com/later: the controller that added the gate",),
        ("Kueue", "Workload"),
    ),
    "a gang that is not complete": Case(
        gang("waiting for 2 of 4 pods of the gang ring"),
        PodState.WAITING,
        "waiting for 2 of 4 pods",
        ("create the pods that are missing",),
    ),
    "a gang that does not say how many": Case(
        gang(
            f"no pod of gang ring says how many start together: set annotation {keys.GANG_MINIMUM}"
        ),
        PodState.UNSCHEDULABLE,
        "no pod of gang ring says how many start together",
        (f"set annotation {keys.GANG_MINIMUM}",),
    ),
    "no agent leads": Case(
        agent_gone,
        PodState.NO_AGENT,
        "the agent of this cluster does not run",
        ("start the agent", "vnode doctor"),
    ),
    "an image for another architecture": pulled(
        "no match for platform in manifest: not found",
        "build registry.example/app:1 for the architecture of the nodes of c2",
        "pull secret",
    ),
    "an image without credentials": pulled(
        "failed to authorize: 401 Unauthorized",
        "kubectl create secret docker-registry NAME -n default",
        "architecture",
    ),
    "an image that does not exist": pulled(
        "registry.example/app:1: not found", "correct the image of the pod", "pull secret"
    ),
    "a registry that nodes do not reach": pulled(
        "dial tcp: lookup registry.example: no such host",
        "see that the nodes of c2 reach the registry",
        "pull secret",
    ),
    "a pull secret that is nowhere": Case(
        without_pull_secret,
        PodState.NOT_STARTING,
        'target c2 lacks what the pod uses: Secret "regcred"',
        ('create Secret "regcred" in namespace default of this cluster',),
        ("architecture",),
    ),
    "a Secret that has not followed": Case(
        secret_that_did_not_follow,
        PodState.NOT_STARTING,
        'target c2 lacks what the pod uses: Secret "db"',
        ('Secret "db" has not followed to c2: kubectl describe pod web -n default',),
        ("create Secret",),
    ),
    "a key that a Secret lacks": sent(
        "container main: CreateContainerConfigError",
        "add key password to Secret db in namespace default of this cluster",
        status=waiting(
            "CreateContainerConfigError", "couldn't find key password in Secret default/db"
        ),
    ),
    "a volume that another node has": sent(
        "target c2 says: Multi-Attach error",
        "another node of c2 has the volume",
        "kubectl describe pod web-",
        event=("FailedAttachVolume", 'Multi-Attach error for volume "pv-1"'),
    ),
    "no network for the pod": sent(
        "target c2 says: Failed to create pod sandbox",
        "the network plugin works on node worker-1 of c2",
        "kubectl describe pod web-",
        event=("FailedCreatePodSandBox", "Failed to create pod sandbox: network: plugin"),
    ),
    "an earlier refusal of a pod that starts": sent(
        "the containers start in target c2 on node worker-1",
        state=PodState.STARTING,
        event=("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu"),
    ),
    "a node that does not report": Case(
        silent_node,
        PodState.NOT_READY,
        "the pod is not ready, as the node that it runs on does not report",
        ("in c2, kubectl describe node worker-1", "kubectl delete node worker-1"),
        ("readinessProbe", "kubectl logs"),
    ),
    "a pod that ran too long": sent(
        "the pod has failed: DeadlineExceeded",
        "raise activeDeadlineSeconds",
        "does not start again",
        status={"phase": "Failed", "reason": "DeadlineExceeded", "message": "too long"},
        state=PodState.FAILED,
    ),
    "a finalizer of another controller": Case(
        kept_by_finalizer,
        PodState.STUCK_ENDING,
        "finalizers of other controllers keep the pod: batch.example.com/tracked",
        ("the controllers that added them",),
    ),
    "an annotation on the Deployment": Case(
        annotated_deployment,
        PodState.NOT_ELECTED,
        "nothing elects it: the annotation is on its Deployment",
        ("kubectl edit deployment web -n default",),
        ("annotate it",),
    ),
    "an annotation that is mistyped": Case(
        lambda here: ordinary(here, {f"{keys.PREFIX}elected": ""}),
        PodState.NOT_ELECTED,
        f"nothing elects it: it has {keys.PREFIX}elected",
        (f"annotate it with {keys.ELECT}", "create the pod again"),
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_the_cause_comes_first_with_its_cure_and_nothing_false(
    name: str, clock: Clock
) -> None:
    case, here = CASES[name], Situation(clock)
    case.make(here)
    verdict = await here.explain()
    assert verdict.state is case.state
    assert verdict.text.startswith(case.headline)
    assert len(verdict.cures) == len(case.cures), verdict.cures
    for part, cure in zip(case.cures, verdict.cures, strict=True):
        assert part in cure

    for unsaid in case.unsaid:
        assert unsaid not in " ".join((verdict.text, *verdict.cures))
