"""Situations in which a policy, a gang, or this cluster itself keeps the pod from targets."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.situation_cases import AGAIN, Case, between, nowhere
from tests.unit.cli.situations import Situation
from vnode.api import keys, kinds
from vnode.insight.verdicts import PodState

FULL: Final = "Insufficient cpu on any one node (the largest has 4 free)"
ROOM: Final = "add nodes in the target that are large enough"
RING: Final = {keys.GANG: "ring"}


def preempting(here: Situation) -> None:
    here.pod()
    here.chaperon({}, "0/3 nodes are available: 3 Insufficient cpu")
    here.target.change(
        kinds.POD_CHAPERONS,
        here.name_there,
        "default",
        lambda obj: obj["status"].update(nominatedNodeName="worker-1"),
    )


def reserved_for_a_gang(here: Situation) -> None:
    here.pod(annotations=RING)
    here.chaperon({keys.IS_RESERVED: "true"})


PLANNED: Final[dict[str, Case]] = {
    "a decision that leaves one target out": between(
        {"c2": "placementpolicy/eu: placementdecision/eu selects other clusters", "c3": FULL},
        f"c3: {FULL}",
        ROOM,
        unsaid=("placementdecision",),
    ),
    "a decision that selects nothing": nowhere(
        "placementpolicy/eu: placementdecision/eu selects no clusters",
        "have placementdecision/eu select c2",
    ),
    "a gang whose target is full": between(
        {"c2": "the pods of gang default/ring go to target c3", "c3": FULL},
        f"c3: {FULL}",
        ROOM,
        unsaid=("c2",),
    ),
    "devices that are used in a target that is full": between(
        {"c2": 'ResourceClaim "gpu" is used in target c3', "c3": FULL}, f"c3: {FULL}", ROOM
    ),
    "a pod that came through the other target": between(
        {"c2": "the pod came through that cluster", "c3": FULL}, f"c3: {FULL}", ROOM
    ),
    "a pod that came through the only target": nowhere(
        "the pod came through that cluster", "connect another target"
    ),
    "a webhook that is dead, and a target that is cordoned": between(
        {
            "c2": "the virtual node was unschedulable (cordoned)",
            "c3": 'Internal error occurred: failed calling webhook "w.example": connection refused',
        },
        "c3: Internal error occurred: failed calling webhook",
        "see why webhook w.example of c3 does not answer",
        "vnode uncordon c2",
    ),
    "a policy that keeps pods together": nowhere(
        "placementpolicy/one keeps the pods of deployment.apps/default/web together in c3",
        "kubectl edit placementpolicy/one -n default",
    ),
    "a policy that divides a gang": nowhere(
        "placementpolicy/even divides pods among clusters, and a gang starts in one: give the "
        "policy mode Single or Any",
        "give placementpolicy/even mode Single or Any (kubectl edit placementpolicy/even -n",
        annotations=RING,
    ),
    "room that is kept for a gang": nowhere(
        "its room is kept for gang default/ring, which has waited long",
        "wait until gang default/ring has started",
    ),
    "a target that does not say which cluster it is": nowhere(
        "its cluster is unknown: check that the vnode agent runs there",
        "start vnode's agent in c2: vnode doctor --target FILE",
    ),
    "a namespace that is being deleted": Case(
        lambda here: here.pod("0/1 targets: c2: namespace default is being terminated"),
        PodState.UNSCHEDULABLE,
        "namespace default is being terminated",
        ("create the pod in another namespace", AGAIN),
    ),
    "a namespace that has lost its label": Case(
        lambda here: here.pod(f"0/1 targets: c2: {keys.not_enabled('default')}"),
        PodState.UNSCHEDULABLE,
        "namespace default does not have the label multicluster-scheduler=enabled",
        ("kubectl label namespace default multicluster-scheduler=enabled", AGAIN),
    ),
    "room that is being made": Case(
        preempting,
        PodState.WAITING,
        "c2 ends pods of lower priority to make room",
        (),
        ("queue",),
    ),
    "a gang of which one pod has a place": Case(
        reserved_for_a_gang,
        PodState.WAITING,
        "c2 has a place for the pod, which waits for others of its gang",
        (),
        ("answer",),
    ),
}
