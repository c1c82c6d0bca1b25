"""Keeps the quotas and limits of one namespace of one target, and what of them is promised.

What a pod seems to lack is a guess (`vnode.api.resource_quotas`); what the target has answered to
pods like it says how far to go by that (`quota_answers`).
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from vnode.api import keys, limit_ranges, objects, resources
from vnode.api.durations import TICK
from vnode.api.errors import ConfigError
from vnode.api.limit_ranges import LimitRange, Nanos
from vnode.api.objects import Object
from vnode.api.priorities import PriorityMapping
from vnode.api.resource_quotas import Quota, QuotaUsage
from vnode.scheduling.known_usages import KnownUsages
from vnode.scheduling.promises import REPORT_SECONDS
from vnode.scheduling.quota_answers import PodKind, QuotaAnswers

MOST: Final = 50
"""Quotas that are read of one namespace."""
_MOST_RANGES: Final = 10
"""LimitRanges that are read of one namespace: each container is held to each."""

FEW: Final = 200
"""Promised pods that are counted in one step when limits change: 15 ms."""

log = logging.getLogger(__name__)


class NamespaceRules:
    """The quotas and limits of one namespace of one target, and what is promised of them."""

    def __init__(
        self,
        promised: Callable[[], Mapping[str, Object]],
        priorities: Callable[[], PriorityMapping],
        known: KnownUsages,
        recount: Callable[[Iterator[None]], None],
    ) -> None:
        """Take the pods on their way, by UID, as they are at any time, and what does many steps."""
        self._in_slices = recount
        self._priorities = priorities
        self._known = known
        self.quotas: dict[str, Quota] = {}
        self._ranges: dict[str, LimitRange] = {}
        self.answers = QuotaAnswers()
        self._usages: dict[str, QuotaUsage] = {}  # of promised pods, by UID
        self._doubted: set[str] = set()  # UIDs of those that seemed not to fit when promised
        self._kinds: dict[str, PodKind] = {}  # of those, by UID
        self._on_way: Counter[PodKind] = Counter()  # of `_kinds`
        # Pods that the target has taken of late, with the moment: its sums may not have them yet.
        self._taken: list[tuple[float, QuotaUsage]] = []
        # By quota: the sum over those of them that it counts.
        self._sums: dict[str, dict[str, int]] = {}
        self._all_promised = promised
        self._go_through(self._count_promised, tuple(promised()))

    @property
    def is_empty(self) -> bool:
        return not self.quotas and not self._ranges

    def set_quota(self, name: str, quota: Quota | None) -> None:
        before = self.quotas.pop(name, None)
        if quota is None:
            self._sums.pop(name, None)
        elif before is not None or len(self.quotas) < MOST:
            self.quotas[name] = quota
            if before is None or not quota.is_about_the_same(before):
                self._sum(quota)

        if before is None or quota is None or not quota.is_about_the_same(before):
            self.answers.forget()
        elif quota.has_more_than(before):
            self.answers.forget_surprising()

    def set_limit_range(self, name: str, limit_range: LimitRange | None) -> None:
        before = self._ranges.pop(name, None)
        if limit_range is not None and (before is not None or len(self._ranges) < _MOST_RANGES):
            self._ranges[name] = limit_range

        if self._ranges.get(name) == before:
            return

        self.answers.forget()
        self._go_through(self._recount, tuple(self._usages))

    def _go_through(self, each: Callable[[str], None], uids: Sequence[str]) -> None:
        """Count all that are promised: a few at once, many soon, in slices.

        Sums are those of what is counted at each moment: in between some pods count as before.
        """

        def steps() -> Iterator[None]:
            for uid in uids:
                each(uid)
                yield

        if len(uids) > FEW:
            self._in_slices(steps())
        else:
            for _ in steps():
                pass

    def _count_promised(self, uid: str) -> None:
        """Count a pod that was promised before there were rules, if it is promised still."""
        pod = self._all_promised().get(uid)
        if pod is not None and uid not in self._usages:
            self.promise(pod)

    def _recount(self, uid: str) -> None:
        """Count a promised pod by the limits that there are now, if it is promised still."""
        if (usage := self._usages.get(uid)) is not None:
            self._subtract(usage)
            self._drop(uid)
            self.promise(usage.pod, is_new=False)

    def refusals(self, pod: Object, now: float, *, asks: bool = True) -> tuple[str, ...]:
        uid, wanted = objects.uid(pod), self._usage(pod)
        taken = [] if asks else [u for at, u in self._taken if now - at < REPORT_SECONDS - TICK]
        full = [
            quota.certain_refusal(self._promised(quota, uid, taken)) for quota in self._in_order()
        ]
        if any(full):
            return tuple(filter(None, full))

        refused = (
            self.answers.refusal(self._known.kind(wanted), now) if self.answers.refusals else None
        )
        if refused is None or refused.uid == uid:
            return ()

        if not refused.surprising and not self._guess(wanted, promises=False):
            return ()  # there is room by now

        return (f"pod/{refused.pod}, which is like this one, was refused: {refused.message}",)

    def waits(self, pod: Object, now: float, *, asks: bool) -> str:
        uid, wanted = objects.uid(pod), self._usage(pod)
        guess = self._guess(wanted)
        if not guess:
            return ""

        kind = self._known.kind(wanted)
        at_once = self.answers.at_once(kind)
        reserves = keys.NO_RESERVATION not in objects.annotations(pod)
        if at_once == 1 and not (asks and reserves):
            return guess

        refused = self.answers.refusal(kind, now)
        if refused is not None and refused.uid == uid:
            return ""

        if at_once == 1 and not self._guess(wanted, promises=False):
            return f"{guess}, with pods on their way there"

        on_way = self._on_way[kind] - (self._kinds.get(uid) == kind)
        return f"{guess}, and pods like it are being asked for" if on_way >= at_once else ""

    def lack(self, pods: Iterable[tuple[Object, int]], taken: Mapping[str, Nanos]) -> str:
        found: list[str] = []
        sums = dict(taken)
        for pod, count in pods:
            wanted = self._usage_of_all(pod, count)
            found += wanted.violations
            for quota in self._in_order():
                if quota.matches(wanted):
                    before = sums.get(quota.name, {})
                    promised = resources.add(self._promised(quota, objects.uid(pod)), before)
                    found.append(quota.refusal(wanted, promised))
                    sums[quota.name] = resources.add(before, wanted.amounts)

        return "; ".join(filter(None, found))

    def demand(self, pod: Object, count: int) -> dict[str, Nanos]:
        wanted = self._usage_of_all(pod, count)
        counted = (quota for quota in self.quotas.values() if quota.matches(wanted))
        return {quota.name: wanted.amounts for quota in counted}

    def _usage_of_all(self, pod: Object, count: int) -> QuotaUsage:
        usage = self._usage(pod)
        amounts = {name: amount * count for name, amount in usage.amounts.items()}
        return dataclasses.replace(usage, amounts=amounts)

    def is_outdated(self, pod: Object) -> bool:
        wanted = self._usage(pod)
        known = self.answers.refusals.get(self._known.kind(wanted))
        if known is not None and known.surprising and known.uid == objects.uid(pod):
            return False  # it seemed to fit then, too

        return not self._guess(wanted)

    def answer(self, pod: Object, refusal: str | None) -> bool:
        uid = objects.uid(pod)
        if refusal is None and uid not in self._usages and not self.answers.is_about(uid):
            return False  # as of all pods that run

        wanted = self._usage(pod)
        kind, doubtful = self._known.kind(wanted), uid in self._doubted
        if refusal is None:
            return self.answers.take(kind, uid, doubtful=doubtful)

        doubtful |= bool(self._guess(wanted, promises=False))
        return self.answers.refuse(kind, pod, refusal, doubtful=doubtful)

    def _in_order(self) -> list[Quota]:
        return [self.quotas[name] for name in sorted(self.quotas)]

    def _promised(self, quota: Quota, uid: str, taken: Iterable[QuotaUsage] = ()) -> Nanos:
        """Return what is promised to other pods than that one, or was taken."""
        own = self._usages.get(uid)
        counts = own is not None and quota.matches(own)
        promised = self._sums[quota.name]
        for usage in taken:
            if quota.matches(usage):
                promised = resources.add(promised, usage.amounts)

        return resources.subtract(promised, own.amounts) if own and counts else promised

    def _guess(self, wanted: QuotaUsage, *, promises: bool = True) -> str:
        """Return what a pod seems to lack, as it is; without `promises` by what is used alone."""
        found = list(wanted.violations)
        for quota in self._in_order():
            if quota.matches(wanted):
                promised = self._promised(quota, objects.uid(wanted.pod)) if promises else {}
                found.append(quota.refusal(wanted, promised))

        return "; ".join(filter(None, found))

    def promise(self, pod: Object, *, is_new: bool = True) -> None:
        uid = objects.uid(pod)
        try:
            usage = self._usage(pod)
        except ConfigError as error:
            log.info("%s counts in no quota: %s", objects.key(pod), error)
            return

        if is_new and self._guess(usage, promises=False):
            self._doubted.add(uid)

        self._usages[uid], self._kinds[uid] = usage, self._known.kind(usage)
        self._on_way[self._kinds[uid]] += 1
        for quota in self.quotas.values():
            if quota.matches(usage):
                self._sums[quota.name] = resources.add(self._sums[quota.name], usage.amounts)

    def settle(self, uid: str, taken: float | None = None) -> None:
        usage = self._usages.get(uid)
        if usage is not None and taken is not None:
            recent = [entry for entry in self._taken if taken - entry[0] < REPORT_SECONDS]
            self._taken = [*recent, (taken, usage)]

        self._drop(uid)
        self._doubted.discard(uid)
        if usage is not None:
            self._subtract(usage)

    def _subtract(self, usage: QuotaUsage) -> None:
        for quota in self.quotas.values():
            if quota.matches(usage):
                left = resources.subtract(self._sums[quota.name], usage.amounts)
                self._sums[quota.name] = left

    def _drop(self, uid: str) -> None:
        if self._usages.pop(uid, None) is not None:
            kind = self._kinds.pop(uid)
            self._on_way[kind] -= 1
            if not self._on_way[kind]:
                del self._on_way[kind]

    def _usage(self, pod: Object) -> QuotaUsage:
        return self._known.of(pod, limit_ranges.in_order(self._ranges), self._priorities())

    def _sum(self, quota: Quota) -> None:
        total: dict[str, int] = {}
        for usage in self._usages.values():
            if quota.matches(usage):
                total = resources.add(total, usage.amounts)

        self._sums[quota.name] = total
