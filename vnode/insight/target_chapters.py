"""Tells the chapters of a pod's story that happen in targets: what each answers, and the delegate.

No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable

from vnode.api import keys, objects, placeholders
from vnode.api.objects import Object
from vnode.insight import failing, nearest, status_text
from vnode.insight.collecting import moment
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.nearest import Nearness
from vnode.insight.story_lines import Line, times
from vnode.kube.events import WARNING
from vnode.pods import preemption
from vnode.pods.source.candidates import CandidateState
from vnode.scheduling import diagnosis


def of_target(facts: Facts, target: TargetFacts) -> Iterable[Line]:
    """Tell how a target is, and what it has answered or why it was not asked."""
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


def of_delegate(facts: Facts) -> Iterable[Line]:
    """Tell of the delegate pod in the chosen target, and of its containers."""
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
            text = f"{event.get('reason')}: {event.get('message')}{times(event)}"
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
