"""Whether a pod fails, and what of it, by its own status: the one place that decides so. Pure.

`vnode explain` makes a headline and cures of it, `vnode get pods` a word, the dashboard a stage. A
pod fails if it has failed, if a container of it cannot start or has ended badly, or if it runs and
is not ready though it has had the time to become so.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from vnode.api import objects
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
"""Reasons for which containers wait, of those that do not pass by themselves."""

_LONGEST: Final = 300  # characters of a container's own last words
_LEAST: Final = timedelta(seconds=10)  # to become ready: reports take their time
_PERIOD, _THRESHOLD = 10, 3  # the defaults of probes
_SIGNALLED: Final = 128  # exit codes above name the signal that ended the container


class FailureKind(Enum):
    """What is the matter, as far as cures differ."""

    IMAGE = "image"
    CONFIGURATION = "configuration"
    CRASH = "crash"
    NOT_READY = "not ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Failure:
    """What fails. `reason` is one word, as `kubectl get pods` shows it; `text` is a sentence.

    `container` is "" where the pod fails as a whole. `ended` is why that container ended last, and
    `exit_code` with what; "" and None if it has not. `is_restarted` tells that its last words are
    those of the instance before.
    """

    kind: FailureKind
    reason: str
    text: str
    container: str = ""
    ended: str = ""
    exit_code: int | None = None
    is_restarted: bool = False


def find(pod: Object, now: datetime) -> Failure | None:
    """The first failure of the pod; None if it does well, starts, ends, or has completed."""
    phase = objects.status(pod).get("phase")
    if phase == "Failed":
        return _failed(pod)

    if phase == "Succeeded" or objects.is_terminating(pod):
        return None  # what is asked to end may do so with any exit code

    containers = status_text.containers(pod)
    found = next(filter(None, map(_container, containers)), None)
    return found or (_not_ready(pod, now) if phase == "Running" else None)


def word(pod: Object, now: datetime, *, is_away: bool = False) -> str:
    """What the column STATUS says, of a pod whose target may be away.

    It is what kubectl says, but for pods that are not ready and those that nothing is known of.
    """
    said = status_text.pod_status(pod)
    is_over = objects.is_finished(pod) or objects.is_terminating(pod)
    if is_away and not is_over:
        return UNREACHABLE

    failure = find(pod, now) if said == "Running" else None
    return failure.reason if failure else said


def ending(container: Object) -> str:
    """How a container ended before it was started again: `OOMKilled, exit code 137`; "" if not."""
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
    """What is wrong with a container that does not run."""
    name, detail = status_text.state(container)
    reason, called = str(detail.get("reason") or ""), str(container.get("name"))
    if name == "terminated":
        return _ended(container, detail, FailureKind.CRASH) if detail.get("exitCode") else None

    if name != "waiting" or not (_TROUBLE.fullmatch(reason) or _IMAGE.fullmatch(reason)):
        return None

    last = (container.get("lastState") or {}).get("terminated")
    if reason == _CRASH_LOOP and last:
        restarts = int(container.get("restartCount") or 0)
        text = f"container {called}: {reason}: {_outcome(last)}, {restarts} restarts"
        before = _ended(container, last, FailureKind.CRASH)
        return replace(before, reason=reason, text=text, is_restarted=True)

    message = _short(detail.get("message"))
    text = f"container {called}: {reason}" + (f": {message}" if message else "")
    if reason == _CRASH_LOOP:
        return Failure(FailureKind.CRASH, reason, text, called, is_restarted=True)

    kind = FailureKind.IMAGE if _IMAGE.fullmatch(reason) else FailureKind.CONFIGURATION
    return Failure(kind, reason, text, called)


def _ended(container: Object, detail: Object, kind: FailureKind) -> Failure:
    called, reason = str(container.get("name")), str(detail.get("reason") or "Error")
    message = _short(detail.get("message"))
    text = f"container {called}: {_outcome(detail)}" + (f": {message}" if message else "")
    return Failure(kind, reason, text, called, reason, int(detail.get("exitCode") or 0))


def _outcome(detail: Object) -> str:
    """`OOMKilled, exit code 137`, with the signal where no reason says what ended it."""
    code, reason = int(detail.get("exitCode") or 0), str(detail.get("reason") or "Error")
    known = {one.value: one.name for one in signal.Signals}
    by = known.get(code - _SIGNALLED, "") if reason == "Error" else ""
    return f"{reason}, exit code {code}" + (f" ({by})" if by else "")


def _not_ready(pod: Object, now: datetime) -> Failure | None:
    specs = {container.get("name"): container for container in _specs(pod)}
    containers = status_text.containers(pod)
    for container in containers:
        state, detail = status_text.state(container)
        if state != "running" or container.get("ready") or container.get("started") is False:
            continue

        called = str(container.get("name"))
        age = _elapsed(detail.get("startedAt"), now)
        if age is not None and age > _time_to_be_ready(specs.get(called, {})):
            text = f"container {called} is not ready, {status_text.duration(age)} after its start"
            return Failure(FailureKind.NOT_READY, NOT_READY, text, called)

    return _gated(pod, now)


def _gated(pod: Object, now: datetime) -> Failure | None:
    """Its containers are ready, but a readiness gate of the pod is not."""
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
    """As long as its probes give a container after its start."""
    probes = [container.get("readinessProbe") or {}, container.get("startupProbe")]
    seconds = sum(
        int(probe.get("initialDelaySeconds") or 0)
        + int(probe.get("periodSeconds") or _PERIOD)
        * int(probe.get("failureThreshold") or _THRESHOLD)
        for probe in probes
        if probe is not None
    )
    return max(timedelta(seconds=seconds), _LEAST)


def _elapsed(since: object, now: datetime) -> timedelta | None:
    moment = objects.parse_timestamp(str(since or ""))
    return None if moment is None or moment.tzinfo is None else now - moment


def _short(text: object) -> str:
    line = " ".join(str(text or "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
