"""Keeps what was promised to pods on their way, until their targets' reports include it.

A promise ends with the first report after the target was seen to count the pod (`observe`). Neither
may come: a promise that nobody confirms stops counting after a while, and so does one of a pod that
the last report already had. Book-keeping must not keep a pod from a target for long, and the
candidate in the target decides in the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from vnode.api import objects, resources
from vnode.api import shape as shapes
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.api.shape import Shape
from vnode.api.unfinished import UnfinishedWork
from vnode.scheduling.node_rows import NodeRows
from vnode.scheduling.promised_rows import PromisedRows

PROMISE_SECONDS: Final = 15.0
"""How long an unconfirmed promise counts: some bursts' time from promise to reservation."""
FEW: Final = 200
"""Promises that are counted in one step on what a target has reported: 15 ms."""
REPORT_SECONDS: Final = 5.0
"""How long a promise counts of a pod that its target counts, which reports within a second or two.

If no report has come by then, the last one had the pod already.
"""


@dataclass(frozen=True, slots=True)
class _Promise:
    until: float
    requests: Resources
    shape: Shape | None = None
    """What its pod asks of a node, if it asks for devices."""


class Promises:
    """Keeps promises by the pod's UID and the node. Times are the clock's monotonic seconds.

    `constraints` is that of `Handle`.
    """

    def __init__(
        self, constraints: Callable[[Object], Object | None], unfinished: UnfinishedWork
    ) -> None:
        self._constraints = constraints
        self._unfinished = unfinished  # over before anybody reads
        # The one that lapses soonest first.
        self._promises: dict[tuple[str, str], _Promise] = {}
        # Those that the target's next report includes, and when they lapse without one, soonest
        # first. A subset of `_promises`.
        self._observed: dict[tuple[str, str], float] = {}
        # By node: the sum over its promises.
        self._sums: dict[str, Resources] = {}
        self._rows: dict[str, NodeRows] = {}  # of the nodes whose targets report theirs
        self._devices: dict[str, PromisedRows] = {}  # of those whose targets' nodes have devices

    def on(self, node: str) -> Resources:
        """Return the sum of what is promised on a node."""
        return self._sums.get(node, {})

    def made(self, node: str) -> dict[str, Resources]:
        """Return what is promised on a node, by the pod's UID."""
        return {uid: p.requests for (uid, on), p in self._promises.items() if on == node}

    def set_rows(self, node: str, nodes: NodeRows | None, rows: Rows | None) -> None:
        """Take what a target's own nodes have free, or None; promises that are left count there."""
        self._rows.pop(node, None)
        self._devices.pop(node, None)
        if nodes is not None:
            self._rows[node] = nodes

        if rows is not None and rows.has_devices:
            self._devices[node] = PromisedRows(rows)

        if nodes is not None or node in self._devices:
            keys = [key for key in self._promises if key[1] == node]
            placing = self._place_all(keys, nodes, self._devices.get(node))
            if len(keys) > FEW:
                self._unfinished.begin(placing)
            else:
                deque(placing, maxlen=0)

    def largest(self, node: str, reported: Resources | None) -> Resources | None:
        """Return the most that is left on one of a target's own nodes, of what was reported."""
        rows = self._rows.get(node)
        if rows is None or reported is None:
            return reported

        largest, devices = rows.largest(reported), self._devices.get(node)
        return largest | devices.largest() if devices else largest

    def rows(self, node: str, reported: Rows | None) -> Rows | None:
        """Return the rows of what is left on a target's own nodes, of those that it reported."""
        devices = self._devices.get(node)
        return reported if devices is None else devices.left()

    def make(self, pod: Object, node: str, requests: Resources, now: float) -> None:
        """Promise a pod its requests, in place of what it was promised there before."""
        uid, shape = objects.uid(pod), None
        self.settle(uid, node)
        devices = self._devices.get(node)
        if devices is not None and not devices.names.isdisjoint(requests):
            # Where constraints are not known, any of the nodes will do.
            spec = self._constraints(pod)
            shape = shapes.read(requests, spec) or Shape(requests)

        promise = self._promises[uid, node] = _Promise(now + PROMISE_SECONDS, requests, shape)
        self._sums[node] = resources.add(self.on(node), requests)
        self._place(uid, node, promise)

    def _place_all(
        self,
        keys: Iterable[tuple[str, str]],
        nodes: NodeRows | None,
        devices: PromisedRows | None,
    ) -> Iterator[None]:
        """Count promises on what a target has reported, as long as it has reported nothing else."""
        for uid, node in keys:
            if self._rows.get(node) is not nodes or self._devices.get(node) is not devices:
                return

            if promise := self._promises.get((uid, node)):
                self._place(uid, node, promise)
                yield

    def _place(self, uid: str, node: str, promise: _Promise) -> None:
        if rows := self._rows.get(node):
            rows.place(uid, promise.requests)

        if promise.shape is not None and (devices := self._devices.get(node)):
            devices.place(uid, promise.shape)

    def observe(self, uid: str, node: str, now: float) -> None:
        """Note that the target counts the pod."""
        if (uid, node) in self._promises:
            self._observed.setdefault((uid, node), now + REPORT_SECONDS)

    def reported(self, node: str) -> None:
        """End the promises of pods that a target counted before it made this report."""
        for uid, _ in [observed for observed in self._observed if observed[1] == node]:
            self.settle(uid, node)

    def settle(self, uid: str, node: str) -> None:
        """End a promise, if there is one."""
        promise = self._promises.pop((uid, node), None)
        if promise is None:
            return

        self._observed.pop((uid, node), None)
        if rows := self._rows.get(node):
            rows.withdraw(uid)

        if promise.shape is not None and (devices := self._devices.get(node)):
            devices.withdraw(uid)

        left = resources.subtract(self.on(node), promise.requests)
        if any(left.values()):
            self._sums[node] = left
        else:
            del self._sums[node]

    def lapse(self, now: float) -> set[str]:
        """End the promises whose time is over; return their nodes."""
        nodes = set()
        while (first := self._first()) and first[0] < now + TICK:
            _, uid, node = first
            self.settle(uid, node)
            nodes.add(node)

        return nodes

    def next_lapse(self) -> float | None:
        """Return when the next promise lapses; None if there is none."""
        first = self._first()
        return first[0] if first else None

    def _first(self) -> tuple[float, str, str] | None:
        """Return the promise that lapses next, and when."""
        firsts = [(each.until, *key) for key, each in islice(self._promises.items(), 1)]
        firsts += [(until, *key) for key, until in islice(self._observed.items(), 1)]
        return min(firsts, default=None)
