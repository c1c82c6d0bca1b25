"""Situations in which whoever asks may not list the Targets that the pod is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.unit.cli.failing_situations import container
from tests.unit.cli.situation_cases import AGAIN, Case
from tests.unit.cli.situations import Situation
from vnode.api import kinds
from vnode.api.errors import Denied
from vnode.insight.verdicts import PodState

MAY_LIST: Final = "use credentials that may list Targets, ClusterTargets"
FULL: Final = "0/1 targets: c2: 0/3 nodes are available: 3 Insufficient cpu"
FALSE: Final = ("there is no Target", "is gone", "vnode connect")


def unread(make: Callable[[Situation], None]) -> Callable[[Situation], None]:
    """Return what makes a situation for a user who may list no Targets of either kind."""

    def made(here: Situation) -> None:
        make(here)
        for kind in (kinds.TARGETS, kinds.CLUSTER_TARGETS):
            here.source.fail(Denied(403, "Forbidden", "no"), verb="list", kind=kind, times=None)

    return made


def unseen(make: Callable[[Situation], None]) -> Callable[[Situation], None]:
    """Return what makes a situation whose target only the agent can ask."""

    def made(here: Situation) -> None:
        make(here)
        here.unseen = PROFILE

    return made


def ending(here: Situation) -> None:
    here.sent({"phase": "Running"})
    marks = {"deletionTimestamp": here.ago(5), "finalizers": ["multicluster.admiralty.io/c2"]}
    here.source.change(kinds.PODS, "web", "default", lambda obj: obj["metadata"].update(marks))


def known(**status: Any) -> Callable[[Situation], None]:
    """Return what makes a pod that is bound, of whose target that status has come home."""

    def make(here: Situation) -> None:
        here.sent(status)
        here.source.change(kinds.PODS, "web", "default", lambda obj: obj["status"].update(status))
        here.source.add(kinds.NODES, {"metadata": {"name": "admiralty-default-c2"}})

    return make


PROFILE: Final = (
    "the target is reached by its ClusterProfile, with credentials that the agent alone gets from "
    "its plugins"
)
RUNS: Final = {"phase": "Running", "containerStatuses": [container("running", ready=True)]}
LOOPS: Final = {
    "phase": "Running",
    "containerStatuses": [
        container(
            "waiting",
            reason="CrashLoopBackOff",
            restartCount=3,
            last={"exitCode": 1, "reason": "Error"},
        )
    ],
}
UNREAD: Final[dict[str, Case]] = {
    "a full target that may not be read": Case(
        unread(lambda here: here.pod(FULL)),
        PodState.UNSCHEDULABLE,
        FULL,
        ("add nodes in the target that are large enough", MAY_LIST, AGAIN),
        FALSE,
    ),
    "a pod in the queue for targets that may not be read": Case(
        unread(lambda here: here.pod()),
        PodState.WAITING,
        "the agent has not said yet why the pod has no node",
        (MAY_LIST,),
        FALSE,
    ),
    "a pod that runs where one may not look": Case(
        unread(known(**RUNS)),
        PodState.RUNNING,
        "the pod runs on node admiralty-default-c2",
        (),
        FALSE,
    ),
    "a pod that crashes where one may not look": Case(
        unread(known(**LOOPS)),
        PodState.CRASHING,
        "container main: CrashLoopBackOff: Error, exit code 1, 3 restarts",
        ("kubectl logs web -n default -c main --previous",),
        FALSE,
    ),
    "a pod that starts where one may not look": Case(
        unread(known(phase="Pending")),
        PodState.STARTING,
        "the containers start on node admiralty-default-c2",
        (MAY_LIST,),
        FALSE,
    ),
    "a pod in the queue of a ClusterProfile": Case(
        unseen(lambda here: here.pod()),
        PodState.WAITING,
        f"the pod has no place yet; c2 was not to be asked from here: {PROFILE}",
        (),
        ("queue",),
    ),
    "a pod that crashes in a ClusterProfile": Case(
        unseen(known(**LOOPS)),
        PodState.CRASHING,
        "container main: CrashLoopBackOff: Error, exit code 1, 3 restarts",
        ("kubectl logs web -n default -c main --previous",),
    ),
    "a pod that ends in a ClusterProfile": Case(
        unseen(ending),
        PodState.STUCK_ENDING,
        "target c2 was not to be asked from here, so that whether the containers have ended is",
        ("in c2, kubectl get pods -n default -l multicluster.admiralty.io/parent-uid=uid-of-web",),
        ("vnode disconnect", "not ready"),
    ),
}
