"""Watches whether the candidate scheduler of the local cluster lives, for the ClusterSummary.

A kube-scheduler that elects a leader renews a Lease every two seconds. It is read every ten, which
costs less than a watch, and judged as client-go judges a leader: by whether it changes, by our own
monotonic clock. Where there is no Lease, or the agent has the roles of an older release and may not
read it, nothing is known, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import kinds, lease_holders, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client

LEASE: Final = "vnode-candidate-scheduler"  # as the agent's and the scheduler's Roles name it
PERIOD: Final = 10.0  # seconds between two looks
RARELY: Final = 60.0  # likewise, where there is nothing to see


class SchedulerLiveness:
    """Knows whether the scheduler is silent, and calls `changed` when that has changed."""

    def __init__(
        self, client: Client, namespace: str, *, clock: Clock, changed: Callable[[], None]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._changed = changed
        self._observed: Object | None = None  # the spec of its Lease
        self._observed_at = 0.0  # monotonic; when that was first seen
        self._silent_since: str | None = None  # None: not known yet

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self._clock.sleep(await self._look())

    def silent_since(self, present: str) -> str:
        """Return for the summary since when the scheduler is silent; "" if it is not known to be.

        That is `present`, what the summary has, until it was observed for long enough.
        """
        return present if self._silent_since is None else self._silent_since

    async def _look(self) -> float:
        """Read the Lease; return the seconds until the next look."""
        try:
            lease = await self._client.get(kinds.LEASES, LEASE, self._namespace)
        except (NotFound, Denied):
            self._observed = None
            self._conclude("")
            return RARELY
        except VnodeError:
            self._observed = None  # nobody could have renewed it either
            return PERIOD

        spec, now = objects.spec(lease), self._clock.monotonic()
        if spec != self._observed:
            if self._observed is not None:
                self._conclude("")

            self._observed, self._observed_at = spec, now
        elif now >= self._observed_at + _patience(spec):
            renewed = objects.parse_timestamp(str(spec.get("renewTime") or ""))
            self._conclude(objects.timestamp(renewed or self._clock.now()))

        return PERIOD

    def _conclude(self, silent_since: str) -> None:
        """Record what was found out; a silence keeps the time that it was first given."""
        if self._silent_since is None or bool(silent_since) != bool(self._silent_since):
            self._silent_since = silent_since
            self._changed()


def _patience(spec: Object) -> float:
    """Return for how many seconds a Lease may stay as it is while its holder lives."""
    return int(spec.get("leaseDurationSeconds") or 0) + lease_holders.SLACK.total_seconds()
