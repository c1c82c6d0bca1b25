"""Tells the story of a pod in chapters of dated lines, in the order of events. No I/O.

Admission, queue, placement policy, targets, decision, delegate, feedback; chapters that have not
been reached are left out. What targets do is told by `target_chapters`; the present state, and what
to do, come from `judging`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vnode.api import keys, objects
from vnode.insight import failing, judging, pending_pods, policies, status_text, target_chapters
from vnode.insight.collecting import moment
from vnode.insight.facts import Facts
from vnode.insight.story_lines import Line, times
from vnode.insight.verdicts import Verdict
from vnode.kube.events import WARNING
from vnode.planning import reasons


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
            Chapter(f"Target {target.key}", tuple(target_chapters.of_target(facts, target)))
            for target in facts.targets
        ]
        chapters.append(Chapter("Decision", tuple(_decision(facts))))
        chapters.append(Chapter("Delegate", tuple(target_chapters.of_delegate(facts))))
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
            yield Line(f"not placed{times(event)}", moment(event))


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
