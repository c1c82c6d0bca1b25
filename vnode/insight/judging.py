"""Decides the present state of a pod, in one line, and what to do about it. No I/O.

Each function handles one phase of a pod and returns a `Verdict`; `judge` asks in the order in which
a reader would. Cures name commands that the reader can run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from vnode.api import keys, objects, saved_manifest
from vnode.api.objects import Object
from vnode.gangs import membership
from vnode.insight import advice, failing, losing, nearest, refusal_cures, refusals, status_text
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.failing import FailureKind
from vnode.kube.events import WARNING
from vnode.pods.source.candidates import CandidateState
from vnode.scheduling import diagnosis

_LEASE_SLACK = timedelta(seconds=15)  # beyond its duration: clocks differ
_GRACE_SLACK = timedelta(seconds=60)  # beyond its grace period a delegate should have ended

_TO_BE_SENT = timedelta(seconds=30)  # after its binding, until there should be a chaperon

_UNDECIDED = (CandidateState.WAITING, CandidateState.RESERVED)


class PodState(Enum):
    """The state of a pod; where `is_good`, nothing needs to be done."""

    RUNNING = "Running"
    FINISHED = "Finished"
    STARTING = "Starting"
    WAITING = "WaitingForTarget"
    ENDING = "Ending"
    NOT_ELECTED = "NotElected"
    GATED = "Gated"
    NO_TARGET = "NoTarget"
    NO_AGENT = "NoAgent"
    UNSCHEDULABLE = "Unschedulable"
    NOT_STARTING = "NotStarting"
    REFUSED = "UpdateRefused"
    CRASHING = "Crashing"
    NOT_READY = failing.NOT_READY
    FAILED = "Failed"
    UNREACHABLE = failing.UNREACHABLE
    LOST = "TargetGone"
    STUCK_ENDING = "StuckTerminating"

    @property
    def is_good(self) -> bool:
        """Whether all is well, or will be without anybody's doing."""
        return self in (
            PodState.RUNNING,
            PodState.FINISHED,
            PodState.STARTING,
            PodState.WAITING,
            PodState.ENDING,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state, one line about it, and the cures, step by step; none if all is well."""

    state: PodState
    text: str
    cures: tuple[str, ...] = ()


_STATES = {
    FailureKind.CRASH: PodState.CRASHING,
    FailureKind.NOT_READY: PodState.NOT_READY,
    FailureKind.FAILED: PodState.FAILED,
}


def judge(facts: Facts) -> Verdict:
    """Return the pod's present state."""
    pod = facts.pod
    if not status_text.is_proxy(pod):
        return Verdict(PodState.NOT_ELECTED, *advice.not_elected(pod, facts.namespace))

    if objects.is_terminating(pod):
        return _ending(facts)

    if objects.status(pod).get("phase") == "Succeeded":
        return Verdict(PodState.FINISHED, "the pod has ended: Succeeded")

    if objects.status(pod).get("phase") == "Failed":
        return _failing(facts, pod) or Verdict(PodState.FAILED, "the pod has failed")

    return _bound(facts) if facts.node_name else _pending(facts)


def agent_is_alive(facts: Facts) -> bool:
    """Tell whether the source's agent renews its Lease; True where that may not be read."""
    if facts.lease is None:
        return True

    spec = objects.spec(facts.lease)
    renewed = objects.parse_timestamp(str(spec.get("renewTime") or ""))
    life = timedelta(seconds=int(spec.get("leaseDurationSeconds") or 0)) + _LEASE_SLACK
    return renewed is not None and facts.now - renewed < life and bool(spec.get("holderIdentity"))


def _pending(facts: Facts) -> Verdict:
    gates = [gate.get("name", "") for gate in objects.spec(facts.pod).get("schedulingGates") or ()]
    if gates:
        return Verdict(
            PodState.GATED,
            f"the pod waits until its scheduling gates are removed: {', '.join(gates)}",
            ("the controller that added the gate has to remove it (for Kueue: see the Workload)",),
        )

    if not agent_is_alive(facts):
        return Verdict(PodState.NO_AGENT, "the agent of this cluster does not run", advice.AGENT)

    if not facts.targets:
        return Verdict(
            PodState.NO_TARGET,
            "there is no Target or ClusterTarget for this namespace",
            (
                (
                    "vnode connect --source FILE --target FILE --namespace "
                    f"{objects.namespace(facts.pod)} makes one"
                ),
            ),
        )

    if not any(target.is_ready for target in facts.targets):
        found = {t.name: str(t.ready.get("message") or "not checked yet") for t in facts.targets}
        first, *others = [f"target {name} is not ready: {why}" for name, why in found.items()]
        return Verdict(PodState.UNREACHABLE, first, (*others, *refusal_cures.not_connected(found)))

    waiting = [t.name for t in facts.targets if t.candidate in _UNDECIDED]
    scheduled = objects.condition(facts.pod, "PodScheduled") or {}
    is_rejected, message = scheduled.get("status") == "False", str(scheduled.get("message", ""))
    if waiting and not (is_rejected and "no answer" in message):
        return Verdict(
            PodState.WAITING, f"a candidate waits for the answer of {', '.join(waiting)}"
        )

    if is_rejected:
        reasons = diagnosis.split(message, {t.name for t in facts.targets})
        if not reasons and membership.of(facts.pod) is not None:
            return Verdict(PodState.WAITING, message)  # no target was tried

        return _unschedulable(facts, message, reasons)

    return Verdict(PodState.WAITING, "the pod is in the queue of the agent")


def _unschedulable(facts: Facts, message: str, told: Mapping[str, str]) -> Verdict:
    """Return the cause of the target that came nearest; `told` is what the message says of each."""
    rejected = {t.name: diagnosis.tidy(t.rejection) for t in facts.targets if t.rejection}
    ready = {target.name: target.is_ready for target in facts.targets}
    found = nearest.relevant({**told, **rejected} or {"": message}, ready)
    is_unknown = saved_manifest.UNKNOWN in message
    text = saved_manifest.UNKNOWN if is_unknown else nearest.headline(found)
    return Verdict(PodState.UNSCHEDULABLE, text, refusal_cures.unschedulable(found, facts))


def _bound(facts: Facts) -> Verdict:
    target = facts.chosen
    if target is None and facts.node is not None:
        why = f"node {facts.node_name} is not for pods of namespace {objects.namespace(facts.pod)}"
        cures = refusal_cures.not_sent(why)
        return Verdict(PodState.NOT_STARTING, f"the pod is not sent: {why}", cures)

    if target is None:
        return Verdict(
            PodState.LOST,
            f"the Target behind node {facts.node_name} is gone",
            ("the agent deletes the pod, for its owner to replace it; see that it runs",),
        )

    if not target.is_ready:
        reason = str(target.ready.get("message") or target.error or "not checked yet")
        future = losing.fate(facts.pod, target.ready, facts.policies, facts.now)
        checks = "vnode doctor checks both sides; containers keep running meanwhile"
        return Verdict(
            PodState.UNREACHABLE,
            f"target {target.name} is not ready; the pod's last known status may be outdated",
            tuple(filter(None, (reason, future, checks))),
        )

    shown = target.delegate or facts.pod
    if target.missing:
        return Verdict(
            PodState.NOT_STARTING,
            f"target {target.name} lacks what the pod uses: {', '.join(target.missing)}",
            advice.missing(target, facts.pod),
        )

    if verdict := _failing(facts, shown):
        return verdict

    is_there = target.delegate is not None or bool(target.error)
    runs = is_there and objects.status(shown).get("phase") == "Running"
    if not runs and (verdict := _refused(facts, target)):
        return verdict

    if refused := refusals.of_updates(facts, target):
        where = f"runs in target {target.name}" if runs else f"starts in target {target.name}"
        return Verdict(
            PodState.REFUSED, f"the pod {where}, but: {refused}", refusal_cures.refused(refused)
        )

    if runs:
        return Verdict(PodState.RUNNING, f"the pod runs in target {target.name}")

    return _starting(facts, target, shown)


def _refused(facts: Facts, target: TargetFacts) -> Verdict | None:
    """Return why a bound pod has no delegate, or one without a node."""
    if why := refusals.of_delegate(facts, target):
        cures = refusal_cures.unschedulable({target.name: why}, facts)
        return Verdict(PodState.NOT_STARTING, f"target {target.name} has no place: {why}", cures)

    if target.chaperon is not None or target.delegate is not None:
        return None

    scheduled = objects.condition(facts.pod, "PodScheduled") or {}
    since = objects.parse_timestamp(str(scheduled.get("lastTransitionTime") or ""))
    is_late = since is not None and facts.now - since > _TO_BE_SENT and not target.error
    why = refusals.of_sending(facts)
    if is_late and not why:
        why = refusal_cures.unlabelled(facts.namespace)

    if why:
        text, cures = f"the pod is not sent: {why}", refusal_cures.not_sent(why)
        return Verdict(PodState.NOT_STARTING, text, cures)

    if not is_late:
        return None

    return Verdict(
        PodState.NOT_STARTING,
        f"target {target.name} has no PodChaperon of the pod, though the pod is bound there",
        advice.AGENT,
    )


def _failing(facts: Facts, shown: Object) -> Verdict | None:
    """Return the failure in the status of `shown`, which is the pod itself or its delegate."""
    failure = failing.find(shown, facts.now)
    if failure is None:
        return None

    target, text = facts.chosen, failure.text
    if failure.kind is FailureKind.NOT_READY and target is not None:
        unhealthy = [e for e in target.events if e.get("reason") == "Unhealthy"]
        text += f": {unhealthy[-1].get('message', '')}" if unhealthy else ""

    delegate = target.delegate if target else None
    cures = advice.failing(failure, facts.pod, target.name if target else "its target", delegate)
    return Verdict(_STATES.get(failure.kind, PodState.NOT_STARTING), text, cures)


def _starting(facts: Facts, target: TargetFacts, shown: Object) -> Verdict:
    warnings = [event for event in target.events if event.get("type") == WARNING]
    if warnings:
        return Verdict(
            PodState.NOT_STARTING,
            f"target {target.name} says: {warnings[-1].get('message', '')}",
            ("kubectl describe pod of the delegate, in the target, has all of its events",),
        )

    if target.error == "" and target.chaperon is not None and target.delegate is None:
        return Verdict(
            PodState.NOT_STARTING,
            f"target {target.name} has created no delegate pod yet",
            advice.target_agent(target.name),
        )

    node = objects.node_name(shown) if shown is target.delegate else ""
    where = f" on node {node}" if node else ""
    return Verdict(PodState.STARTING, f"the containers start in target {target.name}{where}")


def _ending(facts: Facts) -> Verdict:
    target = facts.chosen
    foreign = [name for name in objects.finalizers(facts.pod) if keys.is_foreign(name)]
    if target is not None and (target.error or not target.is_ready):
        why = target.error or target.ready.get("message", "")
        return Verdict(
            PodState.STUCK_ENDING,
            f"target {target.name} is not ready: whether the containers have ended is unknown",
            advice.stuck(str(why), str(target.key), facts.pod),
        )

    if target is not None and (refused := refusals.of_updates(facts, target)):
        cures = refusal_cures.refused(refused)
        return Verdict(PodState.STUCK_ENDING, f"the pod cannot end: {refused}", cures)

    if target is not None and target.delegate is not None:
        since = _since_deletion(target.delegate, facts)
        grace = objects.metadata(target.delegate).get("deletionGracePeriodSeconds") or 0
        if since is None or since > timedelta(seconds=grace) + _GRACE_SLACK:
            return Verdict(
                PodState.STUCK_ENDING,
                f"the delegate in target {target.name} has not ended",
                advice.delegate_lingers(target.name, target.delegate, asked=since is not None),
            )

        return Verdict(
            PodState.ENDING,
            f"its containers in target {target.name} are ending, for "
            f"{status_text.duration(since)} of {grace}s",
        )

    if target is not None and target.chaperon is not None:
        return Verdict(
            PodState.STUCK_ENDING,
            f"the chaperon in target {target.name} waits for that cluster's agent",
            advice.target_agent(target.name),
        )

    if foreign:
        return Verdict(
            PodState.STUCK_ENDING,
            f"finalizers of other controllers keep the pod: {', '.join(foreign)}",
            ("the controllers that added them have to remove them",),
        )

    if not agent_is_alive(facts):
        return Verdict(
            PodState.STUCK_ENDING,
            "its containers have ended, but no agent is running to remove its finalizer",
            advice.AGENT,
        )

    return Verdict(
        PodState.ENDING, "its containers have ended; the agent removes the pod's finalizer"
    )


def _since_deletion(delegate: Object, facts: Facts) -> timedelta | None:
    """Return for how long the delegate has been terminating; None if it was not deleted."""
    metadata = objects.metadata(delegate)
    deadline = objects.parse_timestamp(str(metadata.get("deletionTimestamp") or ""))
    if deadline is None:
        return None

    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    return facts.now - (deadline - grace)
