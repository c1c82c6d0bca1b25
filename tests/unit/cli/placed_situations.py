"""Situations of pods that have a place, or need none: images, volumes, nodes, ends, elections."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.explained_pods import NODE
from tests.unit.cli.situation_cases import Case, pulled, sent
from tests.unit.cli.situations import Situation, waiting
from vnode.api import keys, kinds
from vnode.api.objects import Object
from vnode.insight.verdicts import PodState


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


PLACED: Final[dict[str, Case]] = {
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
