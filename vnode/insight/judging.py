"""Decides the present state of a pod, in one line, and what to do about it. No I/O.

Each function handles one phase of a pod and returns a `Verdict`; `judge` asks in the order in which
a reader would. Cures name commands that the reader can run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import (
    advice,
    connection_cures,
    ending_pods,
    failing,
    failure_cures,
    kubelet_words,
    losing,
    pending_pods,
    refusal_cures,
    refusals,
    started_pods,
    status_text,
    unread_targets,
    verdicts,
)
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.verdicts import PodState, Verdict
from vnode.pods import rejections

_TO_BE_SENT = timedelta(seconds=30)  # after its binding, until there should be a chaperon


def judge(facts: Facts) -> Verdict:
    """Return the pod's present state."""
    pod = facts.pod
    if not status_text.is_proxy(pod):
        return Verdict(PodState.NOT_ELECTED, *advice.not_elected(pod, facts.namespace, facts.owner))

    if unread_targets.is_behind(facts) and not objects.is_finished(pod):
        return unread_targets.bound(facts)

    if objects.is_terminating(pod):
        return ending_pods.judge(facts)

    if objects.status(pod).get("phase") == "Succeeded":
        return Verdict(PodState.FINISHED, "the pod has ended: Succeeded")

    if objects.status(pod).get("phase") == "Failed":
        return _failing(facts, pod) or Verdict(PodState.FAILED, "the pod has failed")

    return _bound(facts) if facts.node_name else pending_pods.judge(facts)


def _bound(facts: Facts) -> Verdict:
    target = facts.chosen
    if target is None and facts.node is not None:
        why = f"node {facts.node_name} is not for pods of namespace {objects.namespace(facts.pod)}"
        cures = refusal_cures.not_sent(why, facts)
        return Verdict(PodState.NOT_STARTING, f"the pod is not sent: {why}", cures)

    if target is None:
        return Verdict(
            PodState.LOST,
            f"the Target behind node {facts.node_name} is gone",
            ("the agent deletes the pod, for its owner to replace it; see that it runs",),
        )

    if not target.is_connected:
        reason = str(target.connection.get("message") or target.error or "not checked yet")
        future = losing.fate(facts.pod, target.connection, facts.policies, facts.now)
        checks = "vnode doctor checks both sides; containers keep running meanwhile"
        return Verdict(
            PodState.UNREACHABLE,
            f"target {target.name} is not ready, so that the pod's status may be outdated: "
            f"{reason}",
            (*connection_cures.of(target.target, reason), *filter(None, (future,)), checks),
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

    if objects.status(shown).get("phase") == "Succeeded":
        text = f"the pod has ended in target {target.name}: Succeeded; its status here follows"
        return Verdict(PodState.FINISHED, text)

    is_there = target.delegate is not None or bool(target.error)
    runs = is_there and objects.status(shown).get("phase") == "Running"
    if not runs and (verdict := _refused(facts, target)):
        return verdict

    if refused := refusals.of_updates(facts, target):
        where = f"runs in target {target.name}" if runs else f"starts in target {target.name}"
        return Verdict(
            PodState.REFUSED, f"the pod {where}, but: {refused}", refusal_cures.refused(refused)
        )

    return (
        started_pods.running(facts, target, shown)
        if runs
        else started_pods.starting(facts, target, shown)
    )


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
        why = why.removeprefix(f"the pod is not sent to target {target.key}: ")
        text, cures = f"the pod is not sent: {why}", refusal_cures.not_sent(why, facts)
        return Verdict(PodState.NOT_STARTING, text, cures)

    if not is_late:
        return None

    return Verdict(
        PodState.NOT_STARTING,
        f"target {target.name} has no PodChaperon of the pod, though the pod is bound there",
        advice.AGENT[pending_pods.agent_is_alive(facts) :],
    )


def _failing(facts: Facts, shown: Object) -> Verdict | None:
    """Return the failure in the status of `shown`, which is the pod itself or its delegate."""
    failure, target = failing.find(shown, facts.now), facts.chosen
    if failure is None:
        return None

    if shown is not facts.pod and target is not None and _is_made_anew(target, shown):
        why = rejections.reason(shown)
        cures = refusal_cures.unschedulable({target.name: why}, facts)
        return Verdict(PodState.NOT_STARTING, f"target {target.name} has no place: {why}", cures)

    if target is not None:
        failure = replace(failure, text=failure.text + kubelet_words.of(failure, facts))

    delegate = target.delegate if target else None
    cures = failure_cures.of(failure, facts.pod, target, delegate)
    return Verdict(verdicts.state_of(failure.kind), failure.text, cures)


def _is_made_anew(target: TargetFacts, delegate: Object) -> bool:
    """Tell whether a failed delegate is no end of its pod, as its target makes another one."""
    chaperon = target.chaperon
    if chaperon is None or not rejections.may_be(chaperon, delegate):
        return False

    return not rejections.of(chaperon).is_enough(delegate)
