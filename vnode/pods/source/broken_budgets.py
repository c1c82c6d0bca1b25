"""Counts how many pods cannot end without breaking PodDisruptionBudgets of this cluster.

A tenant has as many budgets as it likes, and targets offer dozens of pods each. So budgets are read
once for all pods that are compared, so many of a namespace, and the comparison gives way to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from vnode.api import constraint_size, objects, selectors
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.selectors import Selector
from vnode.api.slices import Slices, in_slices
from vnode.kube.answer_limits import AnswerLimit

MOST_BUDGETS: Final = 500
"""Budgets of a namespace that count, the first by name."""

OF_NAMESPACE: Final = AnswerLimit(4 * 1024 * 1024, 200_000)
"""What is read of a namespace: a budget has 1.5 KiB and 40 values. With more none of it counts."""


@dataclass(frozen=True, slots=True)
class _ReadBudget:
    uid: str
    selector: Selector
    allowed: int


@dataclass(slots=True)
class DisruptionBudgets:
    """The budgets of some namespaces, as they were at one moment."""

    _by_namespace: dict[str, list[_ReadBudget]] = field(default_factory=dict)

    async def read(self, budgets: Iterable[Object], clock: Clock) -> None:
        """Add the budgets of one namespace."""
        async for budget in in_slices(budgets, clock):
            known = self._by_namespace.setdefault(objects.namespace(budget), [])
            if len(known) >= MOST_BUDGETS:
                break

            if (selector := _selector(budget)) is not None:
                allowed = objects.status(budget).get("disruptionsAllowed", 0)
                known.append(_ReadBudget(objects.uid(budget), selector, allowed))

    async def broken_by(self, pods: Iterable[Object], clock: Clock) -> int:
        """Return how many of these pods cannot end, one after the other, without breaking one."""
        slices, ended, broken = Slices(clock), Counter[str](), 0
        for pod in pods:
            is_broken = False
            for budget in self._of(pod):
                if budget.selector.matches(objects.labels(pod)):
                    is_broken |= ended[budget.uid] >= budget.allowed
                    ended[budget.uid] += 1

                await slices.give_way()

            broken += is_broken

        return broken

    def _of(self, pod: Object) -> Iterator[_ReadBudget]:
        return iter(self._by_namespace.get(objects.namespace(pod), ()))


def _selector(budget: Object) -> Selector | None:
    """Return which pods a budget protects; None if it protects none, or cannot be compared."""
    selector = objects.spec(budget).get("selector")
    try:
        constraint_size.check((), selector, "spec.selector")
        return selectors.from_label_selector(selector)
    except ConfigError:
        return None
