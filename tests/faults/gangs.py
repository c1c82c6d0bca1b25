"""Gangs of a random run: no part of one starts without the rest. Pure, fed with every event.

Two rules. Whatever breaks, no pod of a gang is allowed to run before as many are bound as start
together. And while nothing is broken between the source and a target, too few of them run there for
three seconds at most. Both are about a gang's first start: later somebody may have ended pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.faults.plan import SOURCE
from tests.faults.snapshot import Violation, node_of, phase
from vnode.api import keys, objects
from vnode.api.objects import Object

HALF = 3.0
"""Seconds for which too few pods of a gang may run."""

RECOVERY = 20.0
"""Seconds after a fault until all processes are there, and know each other, again."""


@dataclass(slots=True)
class WatchedGang:
    """One of them."""

    name: str
    minimum: int
    bound: set[str] = field(default_factory=set)  # UIDs of those that ever were
    running: dict[str, str] = field(default_factory=dict)  # UID of a delegate -> cluster
    is_allowed: bool = False  # at least one was
    is_over: bool = False  # enough have run, or one that ran has ended: the rest is no first start
    half: float = 0.0  # seconds for which too few ran, and nothing was broken


@dataclass(slots=True)
class GangHistory:
    """What was seen of gangs since the beginning; moments are monotonic."""

    gangs: dict[str, WatchedGang] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    _of: dict[str, WatchedGang] = field(default_factory=dict)  # by UID of the proxy
    _broken: Counter[str] = field(default_factory=Counter)  # clusters
    _calm_from: dict[str, float] = field(default_factory=dict)  # by cluster
    _looked: float = 0.0

    @property
    def started(self) -> list[WatchedGang]:
        """Those of which enough have run, or some have ended."""
        return [gang for gang in self.gangs.values() if gang.is_over]

    @contextmanager
    def trouble(self, clusters: Iterable[str], clock: Callable[[], float]) -> Iterator[None]:
        """Count no time while something is broken in clusters, nor shortly after."""
        where = list(clusters)
        self.look(clock())
        self._broken.update(where)
        try:
            yield
        finally:
            now = clock()
            self.look(now)
            self._broken.subtract(where)
            self._calm_from |= dict.fromkeys(where, now + RECOVERY)

    def on_proxy(self, new: Object | None) -> None:
        """Take note that a proxy was changed."""
        annotations = objects.annotations(new or {})
        name = annotations.get(keys.GANG)
        if new is None or name is None:
            return

        minimum = int(annotations[keys.GANG_MINIMUM])
        gang = self.gangs.setdefault(name, WatchedGang(name, minimum))
        self._of[objects.uid(new)] = gang
        if node_of(new):
            gang.bound.add(objects.uid(new))

    def on_chaperon(self, new: Object | None) -> WatchedGang | None:
        """Take note that a chaperon was changed; return a gang that seems to run too early."""
        gang = self._of.get(objects.labels(new or {}).get(keys.PARENT_UID, ""))
        is_allowed = keys.IS_ALLOWED in objects.annotations(new or {})
        if gang is None or not is_allowed or gang.is_allowed:
            return None

        gang.is_allowed = True
        return gang if len(gang.bound) < gang.minimum else None

    def confirm(self, gang: WatchedGang, pods: Iterable[Object]) -> None:
        """Check with all pods that the source has: the watch of these may be late."""
        for pod in pods:
            self.on_proxy(pod)

        if len(gang.bound) < gang.minimum:
            text = f"{len(gang.bound)} of {gang.minimum} pods of {gang.name} are bound, and one may"
            self._violated("no pod of a gang runs before enough are bound", f"{text} run")

    def on_delegate(self, cluster: str, new: Object, now: float, *, is_there: bool) -> None:
        """Take note that a delegate was changed, or is gone."""
        gang = self._of.get(objects.labels(new).get(keys.PARENT_UID, ""))
        if gang is None or gang.is_over:
            return

        self.look(now)
        uid = objects.uid(new)
        if is_there and phase(new) == "Running" and not objects.is_terminating(new):
            gang.running[uid] = cluster
            gang.is_over = len(gang.running) >= gang.minimum
        elif uid in gang.running:
            gang.is_over = True

    def look(self, now: float) -> None:
        """Add the time since the last look to gangs of which too few run."""
        for gang in self.gangs.values():
            if not gang.running or gang.is_over:
                continue

            places = {SOURCE, *gang.running.values()}
            if any(self._broken[place] for place in places):
                continue

            since = max(self._looked, *(self._calm_from.get(place, 0.0) for place in places))
            before, gang.half = gang.half, gang.half + max(0.0, now - since)
            if before <= HALF < gang.half:
                text = f"{len(gang.running)} of {gang.minimum} pods of {gang.name} run in {places}"
                self._violated("gangs start together", f"{text} for {gang.half:.1f} s")

        self._looked = now

    def _violated(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, what))
