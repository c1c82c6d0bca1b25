"""Tells the story of a pod in chapters of dated lines, in the order of events. No I/O.

Admission, queue, placement policy, targets, decision, delegate, feedback; chapters that have not
been reached are left out. The present state, and what to do, come from `judging`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, objects, placeholders
from vnode.api.objects import Object
from vnode.insight import failing, judging, nearest, pending_pods, policies, status_text
from vnode.insight.collecting import moment
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.nearest import Nearness
from vnode.insight.verdicts import Verdict
from vnode.kube.events import WARNING
from vnode.planning import reasons
from vnode.pods import preemption
from vnode.pods.source.candidates import CandidateState
from vnode.scheduling import diagnosis

_CONSTRAINTS: Final = ("nodeSelector", "affinity", "topologySpreadConstraints", "tolerations")


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened `at` an API timestamp, or that still holds ("")."""

    text: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A step on the pod's way to its containers."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """The story of a pod: its key, column STATUS, chapters, and present state."""

    pod: str
    status: str
    chapters: tuple[Chapter, ...]
    verdict: Verdict


def build(facts: Facts) -> Story:
    """Build the whole story."""
    chapters = [Chapter("Admission", tuple(_admission(facts)))]
    if status_text.is_proxy(facts.pod):
        chapters.append(Chapter("Queue", tuple(_queue(facts))))
        chapters.append(Chapter("Placement", tuple(_placement(facts))))
        chapters += [
            Chapter(f"Target {target.key}", tuple(_target(facts, target)))
            for target in facts.targets
        ]
        chapters.append(Chapter("Decision", tuple(_decision(facts))))
        chapters.append(Chapter("Delegate", tuple(_delegate(facts))))
        chapters.append(Chapter("Feedback", tuple(_feedback(facts))))

    return Story(
        objects.key(facts.pod),
        failing.status(facts.pod, facts.now),
        tuple(chapter for chapter in chapters if chapter.lines),
        judging.judge(facts),
    )


def _admission(facts: Facts) -> Iterable[Line]:
    pod, annotations = facts.pod, objects.annotations(facts.pod)
    owner = objects.controller_reference(pod)
    by = f" by {owner.get('kind')} {owner.get('name')}" if owner else ""
    yield Line(f"created{by}", objects.created(pod))
    if not status_text.is_proxy(pod):
        scheduler = objects.spec(pod).get("schedulerName", "default-scheduler")
        yield Line(f"not a proxy pod: left to {scheduler}")
        return

    if keys.ELECT in annotations:
        yield Line("elected by its own annotation" + _unread(annotations[keys.ELECT]))
    elif facts.namespace and keys.ELECT in objects.annotations(facts.namespace):
        yield Line(f"elected by the annotation of its namespace {objects.namespace(pod)}")
    elif keys.SOURCE_POD_MANIFEST not in annotations:
        yield Line("not elected, but bound to a virtual node by another scheduler, or by its spec")

    if keys.PROXY_CONSTRAINTS in annotations:
        yield Line(f"virtual nodes are chosen by the annotation {keys.PROXY_CONSTRAINTS}")

    if keys.NO_RESERVATION in annotations:
        yield Line("no place is reserved first: the first suitable target gets it")


def _unread(value: str) -> str:
    return f", whose value is not read (it is {value!r})" if value else ""


def _queue(facts: Facts) -> Iterable[Line]:
    spec = objects.spec(facts.pod)
    for gate in spec.get("schedulingGates") or ():
        yield Line(f"held by the scheduling gate {gate.get('name')}")

    if objects.node_name(facts.pod):
        return

    if spec.get("priority"):
        yield Line(f"priority {spec['priority']}")

    if not pending_pods.agent_is_alive(facts):
        renewed = str(objects.spec(facts.lease or {}).get("renewTime") or "never")
        yield Line("no agent leads: its lease was last renewed", renewed)

    for event in facts.events:
        if event.get("reason") == "FailedScheduling":
            yield Line(f"not placed{_times(event)}", moment(event))


def _times(event: Object) -> str:
    count = int(event.get("count") or 1)
    return f", {count} times since {event.get('firstTimestamp')}" if count > 1 else ""


def _placement(facts: Facts) -> Iterable[Line]:
    """Tell which placement policy counts for the pod, and the present plan of its workload."""
    plan = policies.of_pod(facts.policies, facts.pod)
    if plan is None:
        return

    for refused in plan.refused:
        yield Line(f"{refused.name} is not in force: {refused.reason}: {refused.message}")

    if plan.policy is None:
        yield Line("so the pod is placed as without a policy")
        return

    yield Line(f"{plan.policy.name} is for the pod, mode {plan.policy.mode}")
    if plan.policy.undecided:
        yield Line(plan.policy.undecided)

    if counts := plan.counts:
        text = policies.summary(counts)
        yield Line(f"{plan.workload} has {counts.replicas} replicas: {text}")


def _target(facts: Facts, target: TargetFacts) -> Iterable[Line]:
    ready = target.ready
    state = {"True": "ready", "False": "not ready"}.get(str(ready.get("status")), "not known yet")
    since = str(ready.get("lastTransitionTime") or "")
    text = "" if target.is_ready else f": {ready.get('reason', '')}: {ready.get('message', '')}"
    yield Line(f"{state}{text}" if ready else state, since)
    if target.node and objects.spec(target.node).get("unschedulable"):
        yield Line(f"its node {target.key.node_name} is cordoned")

    if target.error and target.error != ready.get("message"):
        yield Line(f"could not be read from here: {target.error}")

    if target.chaperon is not None:
        yield from _candidate(target, target.chaperon)
    elif (verdict := verdict_of(facts, target)) and not _repeats(verdict, target):
        is_answer = target.error or nearest.of(verdict) is Nearness.ANSWERED
        yield Line(verdict if is_answer else f"not asked: {verdict}")


def _repeats(verdict: str, target: TargetFacts) -> bool:
    """Tell whether the scheduler's verdict repeats the Target's condition, or refers to it."""
    message = str(target.ready.get("message") or "").rstrip(".")
    refers = "kubectl describe" in verdict
    return not target.is_ready and bool(message) and (refers or verdict.startswith(message))


def _candidate(target: TargetFacts, chaperon: Object) -> Iterable[Line]:
    yield Line(f"asked: chaperon {objects.key(chaperon)}", objects.created(chaperon))
    condition = objects.condition(chaperon, "PodScheduled") or {}
    at = str(condition.get("lastTransitionTime") or "")
    if keys.PLACEHOLDER in objects.annotations(chaperon):
        yield Line(f"a placeholder waits there: {_news(target, chaperon)}", at)
        return

    match target.candidate:
        case CandidateState.REJECTED:
            yield Line(f"rejected: {diagnosis.tidy(target.rejection)}", at)
            if victims := preemption.read(chaperon):
                yield Line(f"would preempt {victims}, and has not been allowed to")
        case CandidateState.PREEMPTING:
            yield Line("preempts other pods, and waits for their end", at)
        case CandidateState.RESERVED:
            yield Line("a place is reserved")
        case CandidateState.COMMITTED if condition.get("status") == "False":
            yield Line(f"refused: {condition.get('message')}", at)
        case CandidateState.COMMITTED:
            yield Line("a place was reserved, and the candidate allowed to take it")
        case _:
            yield Line("has not answered yet")

    if missing := objects.annotations(chaperon).get(keys.POD_MISSING_SINCE):
        yield Line("its delegate is missing", missing)


def _news(target: TargetFacts, chaperon: Object) -> str:
    """Return what a target says of a placeholder, whose pod runs elsewhere."""
    if placeholders.could_start(chaperon):
        return "there is room now"

    return f"no room: {diagnosis.tidy(target.rejection)}" if target.rejection else "no answer yet"


def verdict_of(facts: Facts, target: TargetFacts) -> str:
    """Return what the pod's own condition says of a target: `c2: reason` of `0/2 targets: ...`."""
    condition = objects.condition(facts.pod, "PodScheduled") or {}
    message = str(condition.get("message") or "")
    if condition.get("status") != "False":
        return ""

    known = {other.name for other in facts.targets}
    return diagnosis.split(message, known).get(target.name, "")


def _decision(facts: Facts) -> Iterable[Line]:
    if not facts.node_name:
        return

    scheduled = objects.condition(facts.pod, "PodScheduled") or {}
    at = str(scheduled.get("lastTransitionTime") or "")
    target = facts.chosen
    where = f"target {target.key}" if target else "a target that is gone"
    yield Line(f"bound to node {facts.node_name}, {where}", at)
    if reason := reasons.of(facts.pod):
        yield Line(reason)


def _delegate(facts: Facts) -> Iterable[Line]:
    target = facts.chosen
    if target is None:
        return

    if target.delegate is not None:
        delegate = target.delegate
        node = objects.node_name(delegate)
        where = f" on node {node}" if node else ", not on a node yet"
        yield Line(
            f"pod {objects.key(delegate)} in {target.name}{where}: "
            f"{status_text.pod_status(delegate)}",
            objects.created(delegate),
        )
    elif target.chaperon is not None:
        yield Line(f"there is no delegate pod in {target.name}")
    elif not target.error:
        yield Line(f"there is no chaperon for it in {target.name}")

    yield from _surroundings(facts, target)
    for container in status_text.containers(target.delegate or facts.pod):
        yield _container(container)

    for event in target.events:
        if event.get("type") == WARNING:
            text = f"{event.get('reason')}: {event.get('message')}{_times(event)}"
            yield Line(text, moment(event))


def _surroundings(facts: Facts, target: TargetFacts) -> Iterable[Line]:
    """Tell what a delegate has got there, and what it lacks."""
    for claimed in target.devices:
        yield Line(f"devices of claim {claimed}")

    for what in target.missing:
        yield Line(f"{what} is missing in namespace {objects.namespace(facts.pod)} there")

    for name in target.unenforced:
        yield Line(
            f"networkpolicy/{name} of this cluster selects this pod and is not enforced in "
            f"{target.name}"
        )


def _container(container: Object) -> Line:
    name, detail = status_text.state(container)
    reason = ": ".join(str(detail[part]) for part in ("reason", "message") if detail.get(part))
    restarts = int(container.get("restartCount") or 0)
    text = f"container {container.get('name')}: {name}" + (f", {reason}" if reason else "")
    if name == "terminated":
        text += f", exit code {detail.get('exitCode')}"

    if restarts:
        text += f", {restarts} restarts"

    if previous := failing.ending(container):
        text += f"; before that it ended: {previous}"

    at = detail.get("finishedAt") or detail.get("startedAt")
    return Line(text, str(at or ""))


def _feedback(facts: Facts) -> Iterable[Line]:
    metadata, target = objects.metadata(facts.pod), facts.chosen
    if facts.node_name and target is not None:
        status = objects.status(facts.pod)
        if not target.is_connected:
            since = str(target.connection.get("lastTransitionTime") or "")
            yield Line("this pod's status is not updated: the target is not ready", since)
        else:
            phase = status.get("phase", "unknown")
            there = objects.status(target.delegate).get("phase") if target.delegate else phase
            differs = f", its delegate's {there}" if there != phase else ", as its delegate's"
            yield Line(f"this pod's phase is {phase}{differs}")

    if "deletionTimestamp" in metadata:
        yield Line("its deletion was requested", str(metadata["deletionTimestamp"]))
        waits = objects.condition(facts.pod, keys.AWAITS_REPLACEMENT) or {}
        chaperon = target.chaperon if target is not None else None
        if chaperon is not None and waits and not objects.is_terminating(chaperon):
            yield Line(str(waits.get("message")), str(waits.get("lastTransitionTime") or ""))

        for name in objects.finalizers(facts.pod):
            yield Line(f"kept by the finalizer {name}")

    for event in facts.events:
        if event.get("type") == WARNING and event.get("reason") != "FailedScheduling":
            yield Line(f"{event.get('reason')}: {event.get('message')}", moment(event))
