"""Elects a leader: of all replicas of an agent, one runs the controllers.

The protocol is client-go's: a Lease that its holder renews, and that another may take once it has
not changed for its whole duration. Without a leader no pod is scheduled and no virtual node has an
address: see docs/reliability.md. Durations are measured
by the local monotonic clock only, from when a change was *observed*; the times in the Lease are for
people. A leader that cannot renew stops its work well before another may lead.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from vnode.api import kinds, objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import AlreadyExists, ConfigError, Conflict, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube import leases
from vnode.kube.client import Client
from vnode.telemetry import metrics

AGENT_LEASE: Final = "vnode-agent"
"""The Lease of a cluster's agents, in their own namespace."""

_JITTER: Final = 1.2  # a follower waits retry..retry*(1+this), as client-go does
_MARGIN: Final = 0.05  # seconds after the end of a lease until it is taken
_RELEASE_TIMEOUT: Final = 2.0  # seconds

log = logging.getLogger(__name__)


class LeaseTiming(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Durations in seconds, by default client-go's.

    A lease that was not renewed for `duration` may be taken by another. A leader that could not
    renew it for `renew_deadline` stops. `retry_period` passes between two attempts. A follower
    leads at most `duration` and 2.2 `retry_period` after a crash.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def check(self) -> None:
        """Raise ConfigError, with the cure, unless the durations leave time for each other."""
        if not self.duration > self.renew_deadline > self.retry_period * _JITTER > 0:
            raise ConfigError(
                "lease: duration must be longer than renewDeadline, and that longer than "
                f"{_JITTER:g} times retryPeriod, which must be more than 0"
            )


DEFAULT_TIMING: Final = LeaseTiming()


class _Lost(Exception):
    """The lease could not be renewed in time."""


class Elector:
    """Campaigns for a Lease; `identity` must be unique among all candidates.

    `has_ended` tells whether another holder has certainly ended, so that its lease need not expire.
    While `may_renew` says no, the lease is left to expire.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: LeaseTiming = DEFAULT_TIMING,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
        has_ended: Callable[[str], bool] = lambda _holder: False,
        may_renew: Callable[[], bool] = lambda: True,
    ) -> None:
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._name = name
        self._timing = timing
        self._clock: Clock = clock or SystemClock()
        self._chance = chance
        self._has_ended = has_ended
        self._may_renew = may_renew
        self._observed: Object = {}  # the lease as last observed
        self._observed_at = float("-inf")  # monotonic; when its content was first observed
        self._until = float("-inf")  # monotonic; work is allowed before this moment only

    @property
    def is_leader(self) -> bool:
        """Whether we lead at this moment, even if the process was frozen until now."""
        return self._clock.monotonic() < self._until

    @property
    def leader(self) -> str:
        """The last observed holder of the lease, "" if it had none."""
        return str(objects.spec(self._observed).get("holderIdentity") or "")

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Campaign, and run `work()` while leading; again and again until cancelled.

        When the lease is lost, the work is cancelled and awaited; a later term calls `work` again.
        An error of the work is raised, and if it returns, so does `run`; then, and when cancelled,
        the lease is released.
        """
        while True:
            await self._campaign()
            log.info("leading as %s", self.identity)
            metrics.LEADER.set(1)
            try:
                await self._term(work)
                return
            except* _Lost:
                log.warning("no longer leading: the lease could not be renewed")
            finally:
                metrics.LEADER.set(0)
                await self._release()

    async def _campaign(self) -> None:
        while not await self._attempt():
            delay = self._timing.retry_period * (1 + _JITTER * self._chance())
            await self._clock.sleep(min(delay, self._expires_in()))

    async def _term(self, work: Callable[[], Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew(), name="lease-renewal")
            try:
                await work()
            finally:
                renewing.cancel()

    async def _renew(self) -> None:
        while True:
            await self._clock.sleep(self._timing.retry_period)
            if self.is_leader and self._may_renew():  # a request could outlast the lease
                await self._attempt()

            holder_is_other = self.leader not in ("", self.identity)
            if holder_is_other or not self.is_leader:
                self._until = float("-inf")
                raise _Lost

    async def _attempt(self) -> bool:
        """Take or renew the lease; False if another holds it, or the API server does not answer.

        An attempt ends in time for another one before a leader must stop.
        """
        started = self._clock.monotonic()
        limit = self._until - started if self.is_leader else self._timing.renew_deadline
        try:
            async with asyncio.timeout(min(limit, self._timing.renew_deadline / 2)):
                taken = await self._take()
        except (VnodeError, TimeoutError) as error:
            log.debug("lease %s: %s", self._name, error)
            return False

        if taken:
            self._until = started + self._timing.renew_deadline

        return taken

    async def _take(self) -> bool:
        now, duration = self._clock.now(), max(1, round(self._timing.duration))
        try:
            lease = await self._client.get(kinds.LEASES, self._name, self._namespace)
        except NotFound:
            fresh = leases.build(self._name, self._namespace, self.identity, duration, now)
            try:
                self._observe(await self._client.create(kinds.LEASES, fresh))
            except AlreadyExists:
                return False

            return True

        self._observe(lease)
        if not self._may_take():
            return False

        body = leases.takeover(lease, self.identity, duration, now)
        try:
            taken = await self._client.patch(kinds.LEASES, self._name, body, self._namespace)
        except (Conflict, NotFound):
            return False

        self._observe(taken)
        return True

    def _observe(self, lease: Object) -> None:
        if objects.spec(lease) != objects.spec(self._observed):
            self._observed, self._observed_at = lease, self._clock.monotonic()
        else:
            self._observed = lease

    def _may_take(self) -> bool:
        if self.leader in ("", self.identity) or self._has_ended(self.leader):
            return True

        return self._clock.monotonic() > self._expires_at()

    def _expires_at(self) -> float:
        duration = float(objects.spec(self._observed).get("leaseDurationSeconds") or 0)
        return self._observed_at + max(duration, self._timing.duration)

    def _expires_in(self) -> float:
        """Return the seconds until an unchanged lease may be taken; infinite if it may be now."""
        left = self._expires_at() - self._clock.monotonic()
        return left + _MARGIN if left > 0 else float("inf")

    async def _release(self) -> None:
        """Release the lease, so that another replica need not wait; it expires if that fails."""
        self._until = float("-inf")
        if self.leader != self.identity:
            return

        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT):
                try:
                    await self._give_up()
                except Conflict:  # a renewal of ours was on its way when it was cancelled
                    self._observe(await self._client.get(kinds.LEASES, self._name, self._namespace))
                    if self.leader == self.identity:
                        await self._give_up()
        except (VnodeError, TimeoutError) as error:
            log.debug("the lease %s was not released: %s", self._name, error)

    async def _give_up(self) -> None:
        body = leases.release(self._observed, self._clock.now())
        self._observe(await self._client.patch(kinds.LEASES, self._name, body, self._namespace))
