"""Decides the present state of a pod, in one line, and what to do about it. No I/O.

Each function handles one phase of a pod and returns a `Verdict`; `judge` asks in the order in which
a reader would. Cures name commands that the reader can run.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import (
    advice,
    connection_cures,
    ending_pods,
    failing,
    failure_cures,
    losing,
    pending_pods,
    refusal_cures,
    refusals,
    starting,
    starting_cures,
    status_text,
    unread_targets,
    verdicts,
)
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.failing import Failure, FailureKind
from vnode.insight.verdicts import PodState, Verdict
from vnode.kube.events import WARNING

_TO_BE_SENT = timedelta(seconds=30)  # after its binding, until there should be a chaperon


_BY_PROBE: Final = (0, 137, 143)
"""Exit codes of containers that the kubelet has asked, or forced, to end."""

_BACK_OFF: Final = re.compile(r"Back-off pulling image \S+$")
"""What says nothing of why an image is not pulled."""

_BEFORE_CONTAINERS: Final = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
"""Reasons of Events that are past once a container has started."""


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
        cures = refusal_cures.not_sent(why)
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

    return _running(facts, target, shown) if runs else _starting(facts, target, shown)


def _running(facts: Facts, target: TargetFacts, shown: Object) -> Verdict:
    text = f"the pod runs in target {target.name}"
    cures: tuple[str, ...] = ()
    if name := starting.unstarted(shown):
        waits = f"container {name} has not passed its startupProbe yet"
        return Verdict(PodState.STARTING, f"{text}; {waits}{_unhealthy(facts)}")

    if not pending_pods.agent_is_alive(facts):
        text += "; no agent of this cluster runs, so that its status here stands still"
        return Verdict(PodState.RUNNING, text, advice.AGENT)

    if found := starting.restarted(shown, facts.now):
        cures = failure_cures.of(found, facts.pod, target, target.delegate)
        text += f"; {found.text}"

    return Verdict(PodState.RUNNING, text, cures)


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
        advice.AGENT[pending_pods.agent_is_alive(facts) :],
    )


def _failing(facts: Facts, shown: Object) -> Verdict | None:
    """Return the failure in the status of `shown`, which is the pod itself or its delegate."""
    failure = failing.find(shown, facts.now)
    if failure is None:
        return None

    target = facts.chosen
    if target is not None:
        failure = replace(failure, text=failure.text + _words_of_kubelet(failure, facts))

    delegate = target.delegate if target else None
    cures = failure_cures.of(failure, facts.pod, target, delegate)
    return Verdict(verdicts.state_of(failure.kind), failure.text, cures)


def _words_of_kubelet(failure: Failure, facts: Facts) -> str:
    """Return what an Event says of a failure that the pod's status does not, after a colon."""
    match failure.kind:
        case FailureKind.NOT_READY:
            return _unhealthy(facts)
        case FailureKind.CRASH if failure.exit_code in _BY_PROBE and failure.ended != "OOMKilled":
            return _unhealthy(facts, "Liveness probe failed", "Startup probe failed")
        case FailureKind.IMAGE if _BACK_OFF.search(failure.text):
            return _last(facts, "Failed", "Failed to pull image")
        case _:
            return ""


def _unhealthy(facts: Facts, *beginnings: str) -> str:
    return _last(facts, "Unhealthy", *beginnings)


def _last(facts: Facts, reason: str, *beginnings: str) -> str:
    """Return the message of the last Event of that reason, after a colon; "" if there is none."""
    of_reason = (e for e in facts.delegate_events if e.get("reason") == reason)
    told = [str(event.get("message") or "") for event in of_reason]
    found = [text for text in told if not beginnings or text.startswith(beginnings)]
    return f": {found[-1]}" if found else ""


def _starting(facts: Facts, target: TargetFacts, shown: Object) -> Verdict:
    node = objects.node_name(shown) if shown is target.delegate else ""
    passed = "FailedScheduling" if node else ""
    told = (event for event in facts.delegate_events if event.get("type") == WARNING)
    past = {passed, *(_BEFORE_CONTAINERS if starting.is_under_way(shown) else ())}
    warnings = [event for event in told if event.get("reason") not in past]
    if warnings:
        return Verdict(
            PodState.NOT_STARTING,
            f"target {target.name} says: {warnings[-1].get('message', '')}",
            starting_cures.of(warnings[-1], target, facts.pod),
        )

    if target.error == "" and target.chaperon is not None and target.delegate is None:
        return Verdict(
            PodState.NOT_STARTING,
            f"target {target.name} has created no delegate pod yet",
            advice.target_agent(target.name),
        )

    where = f" on node {node}" if node else ""
    text = f"the containers start in target {target.name}{where}"
    if (container := starting.initializing(shown)) is not None:
        name, (_state, detail) = container.get("name"), status_text.state(container)
        long = starting.lasting(detail.get("startedAt"), facts.now)
        text += f": init container {name} runs{long}"
        cure = f"kubectl logs {objects.name(facts.pod)} -n {objects.namespace(facts.pod)} -c {name}"
    else:
        long = starting.lasting(objects.status(shown).get("startTime"), facts.now)
        text += f"{long} by now" if long else ""
        cure = starting_cures.all_events(target, facts.pod)

    return Verdict(PodState.STARTING, text, (f"what it waits for: {cure}",) if long else ())
