"""Writes the PlacementDecisions of policies that publish, as far as these are news.

The status controller offers, for each policy, where its pods are bound; `published` makes objects
of that. A policy's decision is read once a term, by the label with its UID, and written at most
once a minute. What is not to be there any more is deleted: slices that are left over, and all of a
policy that has ceased to publish. Those of a deleted policy go with it, as it owns them. Only the
leader writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import AlreadyExists, Denied, NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.placement.decisions import published
from vnode.placement.decisions.published import PublishingState
from vnode.planning.cluster_decision import Publishing
from vnode.runtime.controller import Controller
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_kinds import ServedKind
from vnode.runtime.supervisor import supervise
from vnode.telemetry import audit

_KIND: Final = kinds.PLACEMENT_DECISIONS
_ROLE: Final = "vnode-published-decisions"
SETTLING: Final = 5.0  # seconds in which pods are counted, or go to their clusters together
_INTERVAL: Final = 60.0  # seconds between two changes of a decision, at least
_RETRY: Final = 60.0  # seconds after which what others have to mend is tried again
_NAMES_SHOWN: Final = 10

_WITHDRAWN: Final = PublishingState(False, "Withdrawn", "the policy's decision is being removed")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Offer:
    """What a policy is to publish, and what is known of that."""

    policy: Object
    kind: Kind
    where: Publishing | None
    """None: nothing any more."""
    pods: Mapping[str, int]
    written: tuple[Publishing, tuple[str, ...]] | None = None
    """Where and what, as it was last read or written; None if that is not known, or not whole."""
    before: tuple[str, ...] = ()
    """What others may have seen of it."""
    last: float | None = None
    """When it was last written."""
    since: dict[str, float] = field(default_factory=dict)
    state: PublishingState | None = None


class DecisionPublisher:
    """Publishes for one term of a leader.

    `profiles` returns the ClusterProfiles of virtual nodes for a policy of that namespace, "" where
    one is not for others; None while they are not known.
    """

    def __init__(
        self, client: Client, profiles: Callable[[str], Mapping[str, str] | None], clock: Clock
    ) -> None:
        self._client = client
        self._profiles = profiles
        self._clock = clock
        self._offers: dict[str, _Offer] = {}
        # By key of those that publish no more, and have nothing: their UIDs.
        self._withdrawn: dict[str, str] = {}
        self._served: ServedKind | None = None  # since a policy first published
        self._tasks: KeyedTasks[str] | None = None
        self._changed: Callable[[str], None] = lambda _key: None
        self._controller: Controller[str] = Controller(
            "published-decisions",
            self._reconcile,
            subject=self._subject,
            workers=2,
            namespace=objects.key_namespace,
        )

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of a policy whose state has changed."""
        self._changed = changed

    async def run(self) -> None:
        """Publish until cancelled."""
        async with supervise() as tasks:
            self._tasks = tasks.keyed(clock=self._clock)
            self._watch()
            await self._controller.run()

    def offer(
        self,
        key: str,
        policy: Object,
        kind: Kind,
        where: Publishing | None,
        pods: Mapping[str, int],
    ) -> PublishingState | None:
        """Have a policy publish, or cease to; return how far that has come."""
        known = self._offers.get(key)
        if known is None and where is None:
            is_clean = self._withdrawn.get(key) == objects.uid(policy)
            if is_clean or objects.condition(policy, published.CONDITION) is None:
                return None

        if known is None or objects.uid(known.policy) != objects.uid(policy):
            known = self._offers[key] = _Offer(policy, kind, where, pods)
            self._withdrawn.pop(key, None)
            self._controller.add_after(key, SETTLING)
        elif (known.where, known.pods) != (where, pods):
            known.where, known.pods = where, pods
            self._controller.add_after(key, SETTLING)

        known.policy = policy
        self._watch()
        return known.state if where is not None else _WITHDRAWN

    def forget(self, key: str) -> None:
        """Publish no more for a policy that is gone: its objects go with it."""
        self._offers.pop(key, None)
        self._withdrawn.pop(key, None)

    def _watch(self) -> None:
        if self._tasks is None or self._served is not None or not self._offers:
            return

        self._served = ServedKind(self._client, _KIND, self._wake_all)
        self._served.watch(self._tasks)

    def _wake_all(self) -> None:
        for key in self._offers:
            self._controller.add(key)

    def _subject(self, key: str) -> audit.Subject:
        offer = self._offers.get(key)
        return audit.of(offer.kind, offer.policy) if offer is not None else audit.AGENT

    async def _reconcile(self, key: str) -> float | None:
        offer, served = self._offers.get(key), self._served
        if offer is None:
            return None

        profiles = self._profiles(objects.namespace(offer.policy))
        if served is None or profiles is None:
            return 1.0

        if served.is_known and not served.is_served:
            if offer.where is None:
                self._withdraw(key, offer)
                return None

            why = f"this cluster does not serve {_KIND.resource} of version {_KIND.version}"
            offer.written = None
            self._set_state(key, offer, "NotServed", f"{why}: install it; it is noticed at once")
            return None

        if not served.is_known and served.failure is None:
            return None  # it wakes all

        try:
            return await self._publish(key, offer, profiles)
        except (Denied, AlreadyExists, NotFound) as error:
            offer.written = None
            self._set_state(key, offer, *_explained(error, offer.where))
            return _RETRY

    async def _publish(self, key: str, offer: _Offer, profiles: Mapping[str, str]) -> float | None:
        where, now = offer.where, self._clock.monotonic()
        if where is None:
            for obj in await self._ours(offer):
                await self._client.discard(_KIND, obj)

            self._withdraw(key, offer)
            return None

        if offer.written is None or offer.written[0] != where:
            present = await self._ours(offer)
            offer.before = published.listed(present)
            is_whole = published.is_whole(present, where)
            offer.written = (where, offer.before) if is_whole else None

        best = published.ranked(offer.pods, profiles)
        wanted = published.steady(offer.before, best, offer.since, now)
        if offer.written is None or set(offer.before) != set(wanted.profiles):
            wait = 0.0 if offer.last is None else offer.last + _INTERVAL - now
            if wait > TICK:
                return wait

            offer.last, offer.written = now, None
            await self._write(offer, where, wanted.profiles)
            offer.written, offer.before = (where, wanted.profiles), wanted.profiles
            log.info("%s: %s clusters are published", key, len(wanted.profiles))

        self._set_state(key, offer, *_outcome(offer, where, profiles))
        return wanted.wait

    def _withdraw(self, key: str, offer: _Offer) -> None:
        """Note that nothing is left of a policy's decision, unless it publishes again."""
        if offer.where is None:
            self._offers.pop(key, None)
            self._withdrawn[key] = objects.uid(offer.policy)
            self._changed(key)

    async def _ours(self, offer: _Offer) -> Objects:
        label = f"{keys.PUBLISHED_BY}={objects.uid(offer.policy)}"
        return await self._client.list(_KIND, label_selector=label)

    async def _write(self, offer: _Offer, where: Publishing, profiles: tuple[str, ...]) -> None:
        """Make the slices as they are to be, and delete those that are left over."""
        present = {objects.key(obj): obj for obj in await self._ours(offer)}
        for wanted in published.slices(offer.policy, offer.kind, where, profiles):
            obj = present.pop(objects.key(wanted), None)
            if obj is None:
                await self._client.create(_KIND, wanted)
            elif published.differs(obj, wanted):
                metadata = {"uid": objects.uid(obj), "labels": objects.labels(wanted)}
                body = {**wanted, "metadata": metadata}
                await self._client.patch(_KIND, objects.name(obj), body, where.namespace)

        for obj in present.values():
            await self._client.discard(_KIND, obj)

    def _set_state(self, key: str, offer: _Offer, reason: str, message: str) -> None:
        state = PublishingState(reason == published.CONDITION, reason, message)
        if state != offer.state:
            offer.state = state
            self._changed(key)


def _outcome(offer: _Offer, where: Publishing, profiles: Mapping[str, str]) -> tuple[str, str]:
    """Return reason and message of what was published."""
    count = f"{len(offer.before)} cluster{'' if len(offer.before) == 1 else 's'}"
    left = sorted(node for node, pods in offer.pods.items() if pods and node not in profiles)
    message = f"placementdecision/{where.namespace}/{where.name} has {count}"
    if not left:
        return published.CONDITION, message

    names = ", ".join(left[:_NAMES_SHOWN])
    return "ClustersLeftOut", (
        f"{message}; left out are virtual nodes whose Targets name no ClusterProfile: {names}; set "
        "spec.clusterProfile of these"
    )


def _explained(error: VnodeError, where: Publishing | None) -> tuple[str, str]:
    """Return reason and message of a failure that others have to mend."""
    if isinstance(error, Denied):
        cure = f"bind ClusterRole {_ROLE} to the agent (chart: decisions.publish)"
        return "Forbidden", f"{_KIND.resource} cannot be written: {error}; {cure}"

    if isinstance(error, AlreadyExists):
        cure = "remove it, or set spec.publish.name"
        return "NameTaken", f"{error}: it is not of this policy; {cure}"

    named = where.namespace if where is not None else ""
    return "NotFound", f"{error}: see that there is a namespace {named!r}"
