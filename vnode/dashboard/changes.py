"""Finds what changed in the last hour: targets that became ready or not, and pods that left one.

Most of it is recorded already: conditions of Targets say when they turned last, and Events tell the
rest to whoever may read them, which agents may not. So whoever serves the pages also remembers what
it has seen itself (`ChangeRecord`), at most `MOST` changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from vnode.api import disruptions, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object, Objects
from vnode.dashboard import fair_shares
from vnode.insight import status_text
from vnode.insight.collecting import moment
from vnode.kube.events import WARNING
from vnode.targets import conditions, model

PERIOD: Final = timedelta(hours=1)
MOST: Final = 200
"""Changes that are remembered, and that are shown."""

_SAME: Final = timedelta(minutes=1)  # between two accounts of one change
_MAX_TEXT: Final = 500  # characters
_TARGETS: Final = ("Target", "ClusterTarget")
_OF_TARGETS: Final = frozenset({"Connected", "ClusterConfirmed"})
"""Reasons of Events of Targets that are news although they do not warn."""
_OF_PODS: Final = frozenset({"FailedOver", "Moved", "MoveFailed", "DelegateLost", "Preempted"})
_MEANINGS: Final = {
    "DeletionByTaintManager": ("FailedOver", "failed over to another target"),
    "EvictionByEvictionAPI": ("Evicted", "evicted, to be moved or drained"),
    "PreemptionByScheduler": ("Preempted", "preempted by another pod"),
}


@dataclass(frozen=True, slots=True)
class RecentChange:
    """A change of a Target or a pod, whose key is `target` or `pod`; the other is ""."""

    at: datetime
    reason: str
    text: str
    is_good: bool
    target: str = ""
    pod: str = ""

    @property
    def place(self) -> str:
        """The namespace of what has changed; "" of a ClusterTarget."""
        return objects.key_namespace(self.pod or self.target)


class ChangeRecord:
    """Remembers the changes that the handlers of informers have seen.

    A namespace of which there are many pushes out its own first.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By namespace, oldest first; none is empty, and there are at most MOST together.
        self._changes: dict[str, deque[RecentChange]] = {}

    @property
    def changes(self) -> tuple[RecentChange, ...]:
        """What is remembered, oldest first."""
        found = (change for of_place in self._changes.values() for change in of_place)
        return tuple(sorted(found, key=lambda change: change.at))

    def _add(self, change: RecentChange) -> None:
        self._changes.setdefault(change.place, deque()).append(change)
        if sum(map(len, self._changes.values())) > MOST:
            place, most = max(self._changes.items(), key=lambda each: len(each[1]))
            most.popleft()
            if not most:
                del self._changes[place]

    def on_target(self, old: Object | None, new: Object | None) -> None:
        """Remember that a Target has turned, or is gone."""
        now = self._clock.now()
        if old is not None and new is None:
            text = "the Target was deleted"
            self._add(RecentChange(now, "Deleted", text, False, target=objects.key(old)))
        elif old is not None and new is not None and _ready(old) != _ready(new):
            for change in _turned(new):
                self._add(change)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Remember that a pod is evicted, and why."""
        if old is None or new is None or disruptions.of(old) or not disruptions.of(new):
            return

        if status_text.is_proxy(new) and objects.node_name(new):
            self._add(_disrupted(new, self._clock.now()))


def recent(
    recorded: Iterable[RecentChange], events: Objects, targets: Objects, now: datetime
) -> tuple[RecentChange, ...]:
    """Return the changes of the last hour, newest first; each once, whoever tells it."""
    of_targets = (change for target in targets for change in _turned(target))
    told = (change for event in events for change in _told(event))
    found = [each for each in (*told, *recorded, *of_targets) if now - PERIOD < each.at]
    kept: list[RecentChange] = []
    last: dict[tuple[str, str, str], datetime] = {}
    for each in sorted(found, key=lambda change: change.at, reverse=True):
        same = (each.target, each.pod, each.reason)
        if same not in last or last[same] - each.at > _SAME:
            kept.append(each)

        last[same] = each.at

    return newest(kept, MOST)


def newest(found: Iterable[RecentChange], most: int) -> tuple[RecentChange, ...]:
    """Return so many changes of those that are given newest first, as many of each namespace."""
    chosen = fair_shares.first(found, lambda change: change.place, most)
    return tuple(sorted(chosen, key=lambda change: change.at, reverse=True))


def _ready(target: Object) -> object:
    return (objects.condition(target, conditions.READY) or {}).get("status")


def _turned(target: Object) -> Iterator[RecentChange]:
    """Yield when a Target became ready, or not."""
    ready = objects.condition(target, conditions.READY) or {}
    at = _time(ready.get("lastTransitionTime"))
    if at is not None:
        is_ready, why = ready.get("status") == "True", str(ready.get("message") or "")
        text = "became ready" if is_ready else f"became not ready: {why}"
        key = str(model.key_of(target))
        reason = str(ready.get("reason") or "Unknown")
        yield RecentChange(at, reason, text[:_MAX_TEXT], is_ready, target=key)


def _disrupted(pod: Object, now: datetime) -> RecentChange:
    found = disruptions.of(pod)
    reason = str(found.get("reason") or "Disrupted")
    name, text = _MEANINGS.get(reason, (reason, "disrupted"))
    why = str(found.get("message") or "")
    return RecentChange(now, name, f"{text}: {why}"[:_MAX_TEXT], False, pod=objects.key(pod))


def _told(event: Object) -> Iterator[RecentChange]:
    """Yield what an Event tells, if it is a change of a Target, or of the place of a pod."""
    about, reason = event.get("involvedObject") or {}, str(event.get("reason") or "")
    at = _time(moment(event))
    key = objects.join_key(str(about.get("namespace") or ""), str(about.get("name") or ""))
    text, is_good = str(event.get("message") or "")[:_MAX_TEXT], event.get("type") != WARNING
    if at is None:
        return

    if about.get("kind") in _TARGETS and (not is_good or reason in _OF_TARGETS):
        yield RecentChange(at, reason, text, is_good, target=key)
    elif about.get("kind") == "Pod" and reason in _OF_PODS:
        yield RecentChange(at, reason, text, is_good, pod=key)


def _time(text: object) -> datetime | None:
    found = objects.parse_timestamp(str(text or ""))
    return found if found is not None and found.tzinfo is not None else None
