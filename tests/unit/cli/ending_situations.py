"""Situations of pods that were deleted, and stay."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.cli.situation_cases import Case
from tests.unit.cli.situations import Situation
from tests.unit.cli.unready_situations import change
from vnode.api import keys, kinds
from vnode.insight.verdicts import PodState

MOVED: Final = "moved by placementpolicy/even"
DOWN: Final = "the target cannot be reached: timed out"


def deleted(here: Situation) -> None:
    """Have a pod that runs in c2, and was deleted long ago."""
    here.sent({"phase": "Running"})
    end(here, "source", "web", finalizers=[f"{keys.PREFIX}c2"])


def end(here: Situation, cluster: str, name: str, **more: Any) -> None:
    marks = {"deletionTimestamp": here.ago(900), "deletionGracePeriodSeconds": 30, **more}
    getattr(here, cluster).change(
        kinds.PODS, name, "default", lambda obj: obj["metadata"].update(marks)
    )


def node_gone(here: Situation) -> None:
    deleted(here)
    end(here, "target", here.name_there, finalizers=["batch.example.com/tracked"])


def held_there(here: Situation) -> None:
    deleted(here)
    end(
        here,
        "target",
        here.name_there,
        deletionGracePeriodSeconds=0,
        finalizers=["batch.example.com/tracked"],
    )


def without_agent(here: Situation) -> None:
    deleted(here)
    lease = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": here.ago(300)}
    here.source.change(kinds.LEASES, "vnode-agent", "vnode", lambda obj: obj.update(spec=lease))


def unreachable(here: Situation) -> None:
    deleted(here)
    change(here, "Unreachable", DOWN)


def without_target(here: Situation) -> None:
    deleted(here)
    here.source.remove(kinds.TARGETS, "c2", "default")


def moved(here: Situation, until: float) -> None:
    """Have a pod that vnode moves, and that runs on until another one is ready, so long at most."""
    deleted(here)
    message = (
        f"{MOVED}; runs on until a pod that replaces it is ready, until {here.ago(-until)} at most"
    )
    condition = {"type": keys.AWAITS_REPLACEMENT, "status": "True", "message": message}
    here.source.change(
        kinds.PODS, "web", "default", lambda obj: obj["status"].update(conditions=[condition])
    )


ENDING: Final[dict[str, Case]] = {
    "a node that does not end its pods": Case(
        node_gone,
        PodState.STUCK_ENDING,
        "the delegate in target c2 has not ended",
        ("see why worker-1 in c2 does not end it",),
    ),
    "a finalizer of the target that holds": Case(
        held_there,
        PodState.STUCK_ENDING,
        "finalizers of other controllers keep the delegate in c2: batch.example.com/tracked",
        ("the controllers that added them",),
        ("worker-1", "node"),
    ),
    "an end of which no agent tells the target": Case(
        without_agent,
        PodState.STUCK_ENDING,
        "the delegate in target c2 has not been deleted, as the agent of this cluster does not run",
        ("start the agent of this cluster", "vnode doctor"),
        ("also in c2",),
    ),
    "a pod that is moved, and waits for another": Case(
        lambda here: moved(here, 300),
        PodState.ENDING,
        f"the pod runs in target c2 meanwhile: {MOVED}; runs on until a pod that replaces it is",
        (),
        ("see that the agents run",),
    ),
    "a pod that is moved, and has waited for too long": Case(
        lambda here: moved(here, -300),
        PodState.STUCK_ENDING,
        "the delegate in target c2 has not ended",
        ("see that the agents run",),
        (MOVED,),
    ),
    "an end in a target that is down": Case(
        unreachable,
        PodState.STUCK_ENDING,
        f"target c2 is not ready, and whether the containers have ended is unknown: {DOWN}",
        (
            "the pod goes when the target is back",
            "vnode disconnect default/c2",
            "kubectl patch pod web -n default",
        ),
    ),
    "an end without the Target": Case(
        without_target,
        PodState.ENDING,
        "its target is gone, or it had none; the agent removes",
        (),
        ("its containers have ended",),
    ),
}
