"""Tells of scores that are used and do not count: Events on the Targets that lack them.

A pod that a condition rejects says so itself. A weighted score that is missing rejects nobody, and
nobody would notice that a collector has died; so its Target has an Event, at most one an hour for
each score, once the score has been missing for a minute. Metrics show all scores that are used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.cluster_scores import FoundScore, TargetScores
from vnode.api.objects import Object
from vnode.api.score_terms import ScoreReference, ScoreSource
from vnode.api.target_key import TargetKey
from vnode.kube.events import WARNING, EventRecorder
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scores.score_metrics import ScoreMetrics
from vnode.scores.watched import WatchedScores

SETTLING: Final = 60.0
"""Seconds for which a score has to be missing: a cluster that is new has none yet."""
AGAIN: Final = 3600.0
"""Seconds between two Events about one score of one target."""


def find(scores: TargetScores, reference: ScoreReference, now: datetime) -> FoundScore:
    """Return the score of a target that a reference names."""
    if reference.source is ScoreSource.ADD_ON:
        return scores.of_add_on(reference.resource, reference.name, now)

    return scores.of_own(reference.name, now)


class MissingScores:
    """Tells of missing scores until cancelled; `scores_of` returns all scores of a link's target,
    `find_target` the object of a Target."""

    def __init__(
        self,
        scores: WatchedScores,
        links: Links,
        scores_of: Callable[[Link], TargetScores],
        find_target: Callable[[TargetKey], Object | None],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._scores = scores
        self._links = links
        self._scores_of = scores_of
        self._find_target = find_target
        self._events = events
        self._clock = clock
        self._metrics = ScoreMetrics()
        self._changed = asyncio.Event()
        # By target and score: when (monotonic) it is told next if it is missing still.
        self._due: dict[tuple[TargetKey, ScoreReference], float] = {}

    async def run(self) -> None:
        """Tell until cancelled."""
        self._scores.subscribe(self._changed.set)
        self._links.subscribe(lambda _link: self._changed.set(), lambda _link: self._changed.set())
        with self._metrics.shown():
            while True:
                self._changed.clear()
                await happens_within(self._changed, self._look())

    def _look(self) -> float | None:
        """Tell what is due; return the seconds until something may be."""
        now, moment = self._clock.monotonic(), self._clock.now()
        waits: list[float] = []
        missing = set[tuple[TargetKey, ScoreReference]]()
        values = dict[tuple[TargetKey, ScoreReference], int | None]()
        for link, reference, found in self._all(moment):
            key = link.target, reference
            values[key] = found.value
            if found.until is not None:
                waits.append((found.until - moment).total_seconds())

            if found.value is not None:
                continue

            missing.add(key)
            if self._due.setdefault(key, now + SETTLING) <= now:
                self._tell(link.target, found)
                self._due[key] = now + AGAIN

            waits.append(self._due[key] - now)

        self._metrics.note(values)
        for key in self._due.keys() - missing:
            del self._due[key]

        return max(0.0, min(waits)) if waits else None

    def _all(self, moment: datetime) -> Iterator[tuple[Link, ScoreReference, FoundScore]]:
        for link in self._links:
            scores = self._scores_of(link)
            for reference in self._scores.used:
                yield link, reference, find(scores, reference, moment)

    def _tell(self, target: TargetKey, found: FoundScore) -> None:
        obj = self._find_target(target)
        if obj is not None:
            kind = kinds.scoped(kinds.TARGETS, target.namespace)
            about = objects.reference(obj, kind.kind, kind.api_version)
            self._events.event(about, WARNING, found.reason, found.why)
