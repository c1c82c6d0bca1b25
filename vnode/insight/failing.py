"""Decides, in one place, whether a pod fails and what of it, by its own status. Pure.

`vnode explain` makes a headline and cures of it, `vnode get pods` the column STATUS, the dashboard
a stage. A pod fails if it has failed, if a container of it cannot start or has exited with an
error, or if it runs and is not ready though it has had the time to become so.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from vnode.api import durations, objects
from vnode.api.objects import Object
from vnode.insight import status_text

NOT_READY: Final = "NotReady"
UNREACHABLE: Final = "TargetUnreachable"
_CRASH_LOOP: Final = "CrashLoopBackOff"
_IMAGE: Final = re.compile(
    r"ErrImage\w+|Image\w+(BackOff|Error|Failed)|InvalidImageName|RegistryUnavailable"
    r"|SignatureValidationFailed"
)
_TROUBLE: Final = re.compile(r"Err\w+|Invalid\w+|\w+(Error|BackOff|Failed|Unavailable|CannotRun)")
"""Reasons of waiting containers that do not pass by themselves."""

_MAX_MESSAGE: Final = 300  # characters of a container's termination message
_MIN_TIME: Final = timedelta(seconds=10)  # to become ready: status updates take their time
_PERIOD, _THRESHOLD = 10, 3  # the defaults of probes
_SIGNALLED: Final = 128  # exit codes above name the signal that ended the container


class FailureKind(Enum):
    """The kinds of failures that have different cures."""

    IMAGE = "image"
    CONFIGURATION = "configuration"
    CRASH = "crash"
    NOT_READY = "not ready"
    NODE = "node"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure. `reason` is one word, as `kubectl get pods` shows it; `text` is a sentence.

    `container` is "" where the pod fails as a whole. `ended` is the reason why that container ended
    last, and `exit_code` its exit code; "" and None if it has not. `is_restarted` says that its
    last output is in the log of the previous instance.
    """

    kind: FailureKind
    reason: str
    text: str
    container: str = ""
    ended: str = ""
    exit_code: int | None = None
    is_restarted: bool = False


def find(pod: Object, now: datetime) -> Failure | None:
    """Return the pod's first failure; None if it is well, starting, terminating, or completed."""
    phase = objects.status(pod).get("phase")
    if phase == "Failed":
        return _failed(pod)

    if phase == "Succeeded" or objects.is_terminating(pod):
        return None  # a container that is asked to end may do so with any exit code

    containers = status_text.containers(pod)
    found = next(filter(None, map(_container, containers)), None)
    return found or (_not_ready(pod, now) if phase == "Running" else None)


def status(pod: Object, now: datetime, *, is_away: bool = False) -> str:
    """Return the column STATUS of a pod; `is_away` says that its target is unreachable.

    It is that of kubectl, but for pods that are not ready and those of unreachable targets.
    """
    shown = status_text.pod_status(pod)
    is_over = objects.is_finished(pod) or objects.is_terminating(pod)
    if is_away and not is_over:
        return UNREACHABLE

    failure = find(pod, now) if shown == "Running" else None
    return failure.reason if failure else shown


def ending(container: Object) -> str:
    """Return how a container ended before its restart, `OOMKilled, exit code 137`; "" if it
    was not restarted."""
    last = (container.get("lastState") or {}).get("terminated")
    return _outcome(last) if last else ""


def _failed(pod: Object) -> Failure:
    status = objects.status(pod)
    own = [_short(status[part]) for part in ("reason", "message") if status.get(part)]
    found = Failure(FailureKind.FAILED, "Failed", "")
    for container in status_text.containers(pod):
        name, detail = status_text.state(container)
        if name == "terminated" and detail.get("exitCode"):
            found = _ended(container, detail, FailureKind.FAILED)
            break

    text = ": ".join(filter(None, ("the pod has failed", *own, found.text)))
    return replace(found, reason=str(status.get("reason") or found.reason), text=text)


def _container(container: Object) -> Failure | None:
    """Return the failure of a container that does not run."""
    state, detail = status_text.state(container)
    reason, name = str(detail.get("reason") or ""), str(container.get("name"))
    if state == "terminated":
        return _ended(container, detail, FailureKind.CRASH) if detail.get("exitCode") else None

    if state != "waiting" or not (_TROUBLE.fullmatch(reason) or _IMAGE.fullmatch(reason)):
        return None

    last = (container.get("lastState") or {}).get("terminated")
    if reason == _CRASH_LOOP and last:
        restarts = int(container.get("restartCount") or 0)
        message = f": {said}" if (said := _short(last.get("message"))) else ""
        text = f"container {name}: {reason}: {_outcome(last)}, {restarts} restarts{message}"
        previous = _ended(container, last, FailureKind.CRASH)
        return replace(previous, reason=reason, text=text, is_restarted=True)

    message = _short(detail.get("message"))
    text = f"container {name}: {reason}" + (f": {message}" if message else "")
    if reason == _CRASH_LOOP:
        return Failure(FailureKind.CRASH, reason, text, name, is_restarted=True)

    kind = FailureKind.IMAGE if _IMAGE.fullmatch(reason) else FailureKind.CONFIGURATION
    return Failure(kind, reason, text, name)


def _ended(container: Object, detail: Object, kind: FailureKind) -> Failure:
    name, reason = str(container.get("name")), str(detail.get("reason") or "Error")
    message = _short(detail.get("message"))
    text = f"container {name}: {_outcome(detail)}" + (f": {message}" if message else "")
    return Failure(kind, reason, text, name, reason, int(detail.get("exitCode") or 0))


def _outcome(detail: Object) -> str:
    """Return `OOMKilled, exit code 137`, with the signal's name where the reason is `Error`."""
    code, reason = int(detail.get("exitCode") or 0), str(detail.get("reason") or "Error")
    names = {number.value: number.name for number in signal.Signals}
    by = names.get(code - _SIGNALLED, "") if reason == "Error" else ""
    return f"{reason}, exit code {code}" + (f" ({by})" if by else "")


def _not_ready(pod: Object, now: datetime) -> Failure | None:
    specs = {container.get("name"): container for container in _specs(pod)}
    containers = status_text.containers(pod)
    for container in containers:
        state, detail = status_text.state(container)
        if state != "running" or container.get("ready"):
            continue

        name = str(container.get("name"))
        if container.get("started") is False:
            if restarts := int(container.get("restartCount") or 0):
                text = f"container {name} has not passed its startupProbe, {restarts} restarts"
                return Failure(FailureKind.NOT_READY, NOT_READY, text, name)

            continue

        age = _elapsed(detail.get("startedAt"), now)
        if age is not None and age > _time_to_be_ready(specs.get(name, {})):
            text = f"container {name} is not ready, {status_text.duration(age)} after its start"
            return Failure(FailureKind.NOT_READY, NOT_READY, text, name)

    return _gated(pod, now) or _with_others(pod, now) or _of_silent_node(pod)


def _with_others(pod: Object, now: datetime) -> Failure | None:
    """Return the failure of a pod whose delegate has more containers, which are not ready."""
    others, ready = status_text.unready_others(pod), objects.condition(pod, "Ready") or {}
    age = _elapsed(ready.get("lastTransitionTime"), now)
    if not others or age is None or age <= _time_to_be_ready({}):
        return None

    text = f"containers that the target has added are not ready: {', '.join(others)}"
    return Failure(FailureKind.NOT_READY, NOT_READY, text, others[0])


def _of_silent_node(pod: Object) -> Failure | None:
    """Return the failure of a pod that is not ready though each of its containers is.

    That is how Kubernetes marks pods of a node whose kubelet has stopped to report. A kubelet that
    finds a pod not ready always says why.
    """
    ready, containers = objects.condition(pod, "Ready") or {}, status_text.containers(pod)
    is_marked = ready.get("status") == "False" and not ready.get("reason")
    if not is_marked or not containers or not all(each.get("ready") for each in containers):
        return None

    text = "the pod is not ready, as the node that it runs on does not report"
    return Failure(FailureKind.NODE, NOT_READY, text)


def _gated(pod: Object, now: datetime) -> Failure | None:
    """Return the failure of a pod whose containers are ready, but a readiness gate is not."""
    ready = objects.condition(pod, "Ready") or {}
    age = _elapsed(ready.get("lastTransitionTime"), now)
    is_held = ready.get("status") == "False" and ready.get("reason") == "ReadinessGatesNotReady"
    if not is_held or age is None or age <= _time_to_be_ready({}):
        return None

    text = f"the pod is not ready: {_short(ready.get('message'))}"
    return Failure(FailureKind.NOT_READY, NOT_READY, text)


def _specs(pod: Object) -> Iterator[Object]:
    for field in ("initContainers", "containers"):
        yield from objects.spec(pod).get(field) or ()


def _time_to_be_ready(container: Object) -> timedelta:
    """Return the time after its start that a container's probes give it to become ready."""
    probes = [container.get("readinessProbe") or {}, container.get("startupProbe")]
    seconds = sum(
        int(probe.get("initialDelaySeconds") or 0)
        + int(probe.get("periodSeconds") or _PERIOD)
        * int(probe.get("failureThreshold") or _THRESHOLD)
        for probe in probes
        if probe is not None
    )
    return max(durations.span(seconds), _MIN_TIME)


def _elapsed(since: object, now: datetime) -> timedelta | None:
    moment = objects.parse_timestamp(str(since or ""))
    return None if moment is None or moment.tzinfo is None else now - moment


def _short(text: object) -> str:
    line = " ".join(str(text or "").split())
    return line if len(line) <= _MAX_MESSAGE else line[: _MAX_MESSAGE - 3] + "..."
