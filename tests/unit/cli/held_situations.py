"""Situations in which the pod waits for a cluster, a gate, a gang or an agent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tests.unit.cli.situation_cases import AGAIN, Case, unready
from tests.unit.cli.situations import Situation, a_target
from vnode.api import keys, kinds, scheduler_silence
from vnode.insight.verdicts import PodState


def gated(name: str) -> Callable[[Situation], None]:
    return lambda here: here.pod(schedulingGates=[{"name": name}])


def gang(line: str) -> Callable[[Situation], None]:
    return lambda here: here.pod(line, annotations={keys.GANG: "ring"})


def agent_gone(here: Situation) -> None:
    here.pod()
    lease = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": here.ago(300)}
    here.source.change(kinds.LEASES, "vnode-agent", "vnode", lambda obj: obj.update(spec=lease))


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


HELD: Final[dict[str, Case]] = {
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
        "'default' for this user or service account (vnode connect does), and see that the "
        "target's agent runs; if there is one, its role has been changed: there, run vnode install",
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
}
