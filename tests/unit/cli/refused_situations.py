"""Situations in which no target takes the pod."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.situation_cases import AGAIN, Case, nodes, nowhere
from tests.unit.cli.situations import Situation, a_target
from vnode.api import kinds
from vnode.insight.verdicts import PodState

FORBIDDEN: Final = 'pods "web-x" is forbidden: '
CLAIM: Final = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
NOT_ALLOWED: Final = (
    "podchaperons.multicluster.admiralty.io is forbidden: User "
    '"system:serviceaccount:default:c1" cannot create resource "podchaperons" in API group '
    '"multicluster.admiralty.io" in the namespace "default"'
)
COMMON: Final = ("vnode uncordon", "add nodes")


def two_targets(here: Situation) -> None:
    here.source.add(kinds.TARGETS, a_target("c3"))
    here.pod(
        "0/2 targets: c2: planned elsewhere by placementpolicy/even: 0 of 2 here; c3: didn't match "
        "Pod's node affinity/selector"
    )


def edited_role_and_a_full_target(here: Situation) -> None:
    here.source.add(kinds.TARGETS, a_target("c3"))
    here.pod(f"0/2 targets: c2: {NOT_ALLOWED}; c3: 0/3 nodes are available: 3 Insufficient cpu")


REFUSED: Final[dict[str, Case]] = {
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
    "a host port that others have": nodes(
        "node(s) didn't have free ports for the requested pod ports",
        "other pods have that host port on the nodes of c2",
        unsaid=("registry", "toleration"),
        containers=[{"name": "main", "image": "app:1", "ports": [{"hostPort": 80}]}],
    ),
    "a claim that is for one pod at a time": nodes(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod",
        "another pod has the claim",
        volumes=CLAIM,
        unsaid=("not bound",),
    ),
    "a role that was edited": nowhere(
        NOT_ALLOWED,
        "its role has been changed: in that cluster run vnode install again",
        unsaid=("create the service account",),
    ),
    "a role that was edited while another target is full": Case(
        edited_role_and_a_full_target,
        PodState.UNSCHEDULABLE,
        f"c2: {NOT_ALLOWED}",
        (
            "its role has been changed: in that cluster run vnode install again",
            "add nodes in the target that are large enough",
            AGAIN,
        ),
        ("create the service account", "the text names what refuses it"),
    ),
    "a quota for which another pod is asked": nowhere(
        "no room in ResourceQuota team for requests.cpu 1, and pods like it are being asked for",
        "wait a moment: c2 is being asked",
        unsaid=("raise ResourceQuota",),
    ),
    "a target that answers about others first": nowhere(
        "not decided yet: the target answers about other pods meanwhile",
        "wait a moment: c2 is being asked",
    ),
    "a binding that a webhook of this cluster denies": nowhere(
        'this cluster does not bind the pod: admission webhook "no.example" denied the request: no',
        "see which webhook or policy of this cluster is against the binding",
        unsaid=("the text names what refuses it",),
    ),
    "a virtual node that is not ready": nowhere(
        "had untolerated taint {node.kubernetes.io/unreachable: }",
        "the virtual node of c2 is not ready",
        unsaid=("toleration",),
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
}
