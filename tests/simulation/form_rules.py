"""Rules about what delegates are when they are bound: never older than their pods were then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.faults.snapshot import node_of
from tests.simulation.invariants import LABEL
from tests.simulation.override_policies import MARK
from vnode.api import keys, objects
from vnode.api.objects import Object

_NEWS: Final = 0.5
"""Seconds, and so many times the latency, in which an agent hears of a policy where nothing fails,
and asks for what it has decided just before."""
_NEWS_TIMES: Final = 8

PodForm = tuple[str | None, str, str | None]
"""A label, the image, and the CPUs that are asked for."""


def _form(pod: Object) -> PodForm:
    labels, (container, *_) = objects.labels(pod), objects.spec(pod)["containers"]
    renamed = keys.PREFIX + LABEL.rpartition("/")[2]
    cpu = (container.get("resources") or {}).get("requests", {}).get("cpu")
    return labels.get(LABEL, labels.get(renamed)), str(container.get("image")), cpu


@dataclass(slots=True)
class FormRules:
    """Remembers what each proxy was, when it was bound, and which policy there was."""

    latency: float
    is_calm: bool
    forms: dict[str, list[PodForm]] = field(default_factory=lambda: defaultdict(list))  # by UID
    bound: dict[str, tuple[int, float]] = field(default_factory=dict)  # UID -> which form, when
    marks: list[tuple[float, str | None]] = field(default_factory=lambda: [(-1.0, None)])

    def on_proxy(self, pod: Object, now: float) -> None:
        """Note what a proxy is now."""
        uid = objects.uid(pod)
        forms, form = self.forms[uid], _form(pod)
        if not forms or forms[-1] != form:
            forms.append(form)

        if node_of(pod):
            self.bound.setdefault(uid, (len(forms) - 1, now))

    def on_policy(self, value: str | None, now: float) -> None:
        """Note which mark delegates are to have from now on; None for none."""
        self.marks.append((now, value))

    def wrong(self, delegate: Object) -> Iterator[str]:
        """Yield what is wrong with a delegate that was just bound."""
        uid = objects.labels(delegate).get(keys.PARENT_UID, "")
        if uid not in self.bound:
            return

        first, at = self.bound[uid]
        allowed, found = self.forms[uid][first:], _form(delegate)
        if found not in allowed:
            yield f"{objects.key(delegate)} is {found}, its pod was one of {allowed}"

        mark, since = objects.annotations(delegate).get(MARK), at - self._news()
        if self.is_calm and mark not in self._marks_from(since):
            yield f"{objects.key(delegate)} has mark {mark}, not one of {self._marks_from(since)}"

    def _news(self) -> float:
        return _NEWS + self.latency * _NEWS_TIMES

    def _marks_from(self, since: float) -> list[str | None]:
        """Return which marks were in force at that moment and later."""
        before = [value for at, value in self.marks if at <= since]
        return [*before[-1:], *(value for at, value in self.marks if at > since)]
