"""One live connection to one target: client, informers, prober; a `Link` for as long as it runs.

A Link is to one cluster. Nothing there is watched before the cluster is known to be the Target's
own. If another one answers later, the Link ends and a new one, which knows nothing, takes its
place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vnode.api.clock import Clock, happens_within
from vnode.api.identity import Identity
from vnode.kube.endpoint import Endpoint
from vnode.kube.namespace_scope import EVERYTHING, NamespaceScope
from vnode.kube.read_limit import ReadTime
from vnode.runtime.link import UNDESCRIBED, ClusterDescription, Link
from vnode.runtime.link_health import CONNECTING, LEAVING, LinkHealth
from vnode.runtime.links import Links
from vnode.runtime.supervisor import Supervisor, supervise
from vnode.targets import cleanup, cluster_identity, link_building, moving
from vnode.targets.cluster_identity import Expected, Recognition, RecognizedClient
from vnode.targets.heartbeat_monitor import HeartbeatMonitor
from vnode.targets.model import TargetSpec
from vnode.targets.name_conflicts import NameConflicts
from vnode.targets.own_rights import OwnRights
from vnode.targets.probing import Prober
from vnode.telemetry import audit, logs, metrics

_QUOTAS: Final = 2.0  # seconds that a target's first use waits for each list of its quotas

log = logging.getLogger(__name__)


class Connection:
    """Runs a link from `run` on, until cancelled or until a deleted Target's cluster is cleaned up.

    `run` also ends when another cluster answers than before, or none at the address to which the
    connection was moved, to be called again. `expected` returns
    which cluster the Target may be, and `on_cluster` is called with the UID of the one that it is.
    `on_name_conflicts` is called when `name_conflicts`, those of the present run, changes, and
    `on_settled` when it is known whether the target is of use.
    """

    def __init__(
        self,
        spec: TargetSpec,
        endpoint: Endpoint,
        *,
        identity: Identity,
        links: Links,
        clock: Clock,
        expected: Callable[[], Expected],
        on_cluster: Callable[[str], None],
        on_name_conflicts: Callable[[], None],
        scope: NamespaceScope = EVERYTHING,
        read_time: ReadTime | None = None,
    ) -> None:
        self.spec = spec
        self._read_time = read_time  # which other Targets of the namespace share
        self._scope = scope  # of a cluster that is its own target
        self.has_begun = False  # whether `run` was called ever
        self.has_left = False  # whether all was done that the end of the Target asks for
        self.on_settled: Callable[[], None] = _nobody
        self.failure = ""  # why `run` failed the last time; "" while it runs
        self.name_conflicts = NameConflicts(identity.uid, on_name_conflicts)
        self._on_name_conflicts = on_name_conflicts
        self.endpoint = endpoint
        self._identity = identity
        self._links = links
        self._clock = clock
        self._expected = expected
        self._on_cluster = on_cluster
        self._description = UNDESCRIBED
        self._link: Link | None = None  # of the present run
        self._prober: Prober | None = None  # of the present run
        self._leave = asyncio.Event()  # set once the Target is deleted
        self._has_moved = asyncio.Event()  # set when `endpoint` is at another address

    @property
    def leaving(self) -> bool:
        """Whether `leave` was called: this connection only cleans up."""
        return self._leave.is_set()

    @property
    def is_through(self) -> bool:
        """Whether nothing more is done for a deleted Target; a clean-up that failed is not tried
        again."""
        return self.has_left or bool(self.leaving and self.failure)

    def leave(self) -> None:
        """Have `run` clean up the cluster, and then end: the Target was deleted."""
        self._leave.set()

    def take_over(self, endpoint: Endpoint) -> None:
        """Send further requests with the credentials of an endpoint that is the same otherwise.

        Watches and streams that are open go on. What was refused for the former credentials is
        tried again at once.
        """
        self.endpoint = endpoint
        if (link := self._link) is not None:
            link.client.take_over(endpoint.authorization)
            for informer in (link.chaperons, link.summaries, *link.quotas):
                informer.retry_now()

        self.probe_now()

    def move_to(self, endpoint: Endpoint) -> bool:
        """Have the link go on at another address, once it is shown that this cluster answers there.

        Until then the link works on as before. If that is not shown in time, `run` ends. Returns
        False, and does nothing, if nothing would be lost by a new connection.
        """
        if self._link is None or not self._link.health.healthy:
            return False

        self.endpoint = endpoint
        self._has_moved.set()
        return True

    def describe(self, description: ClusterDescription) -> None:
        """Have the link know what an inventory says of the target."""
        self._description = description
        if self._link is not None:
            self._link.describe(description)

    def withhold(self, why: str) -> None:
        """Have the link be of no use for that reason, though its credentials still work; "" ends
        it."""
        if self._prober is not None:
            self._prober.withhold(why)

    def probe_now(self) -> None:
        """Probe now: what the Target expects may have changed."""
        if self._prober is not None:
            self._prober.probe_now()

    async def run(self) -> None:
        """Connect, publish the link, and keep it alive; withdraw it at the end."""
        self.has_begun = True
        key = self.spec.key
        recognition = Recognition(
            key,
            self._expected,
            self._on_cluster,
            own_uid=self._identity.uid if self.spec.is_self else None,
            not_uid=self._identity.uid if self.spec.profile else "",
        )
        self._has_moved.clear()
        with logs.context(target=str(key)), audit.on_behalf_of(audit.of_target(key)):
            async with RecognizedClient(
                self.endpoint, recognition, name=str(key), scope=self._scope
            ) as client:
                if self._read_time is not None:
                    client.read_limiter.time = self._read_time

                link = link_building.make(client, self.spec, self._identity, self._clock)
                self._link = link
                link.describe(self._description)
                self._links.add(link)
                try:
                    await self._serve(link, recognition)
                finally:
                    self._link = None
                    self._links.remove(link)
                    metrics.TARGET_HEALTHY.labels(str(key)).set(0)

    async def _serve(self, link: Link, recognition: Recognition) -> None:
        prober = self._prober = Prober(link, self._clock, recognition)
        gauge = metrics.TARGET_HEALTHY.labels(str(self.spec.key))
        gauge.set(0)
        link.on_health(lambda: gauge.set(link.health.healthy))
        link.on_health(lambda: None if link.health.reason == CONNECTING else self.on_settled())
        link.on_doubt(prober.probe_now)
        self.failure = ""
        self.name_conflicts = NameConflicts(self._identity.uid, self._on_name_conflicts)
        link.chaperons.subscribe(self.name_conflicts.on_chaperon)
        link.summaries.subscribe(lambda old, new: None if old and new else prober.probe_now())
        async with supervise() as tasks:
            await self._probe(link, prober, recognition, tasks)
            if recognition.changed.is_set():
                log.warning("another cluster answers than before; connecting anew")
            elif not self.leaving:
                log.info("connecting anew")
            elif recognition.recognized.is_set():
                await self._clean_up(link)
                self.has_left = True
            else:
                log.warning("the Target is gone; nothing is deleted, as its cluster did not answer")
                self.has_left = True

    async def _probe(
        self, link: Link, prober: Prober, recognition: Recognition, tasks: Supervisor
    ) -> None:
        """Keep the link's health true until it is time to leave, or another cluster answers."""
        name = link.node_name
        heartbeats = HeartbeatMonitor(link, self._clock)
        async with asyncio.TaskGroup() as group:
            started = [
                group.create_task(prober.run(), name=f"probe-{name}"),
                group.create_task(heartbeats.run(), name=f"heartbeats-{name}"),
                group.create_task(
                    self._follow(link, prober, recognition, tasks), name=f"follow-{name}"
                ),
            ]
            ends = [
                group.create_task(self._may_leave(link), name=f"leave-{name}"),
                group.create_task(recognition.changed.wait(), name=f"end-{name}"),
                group.create_task(self._move(link, recognition), name=f"move-{name}"),
            ]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in (*started, *ends):
                task.cancel()

    async def _move(self, link: Link, recognition: Recognition) -> None:
        """Take the link to each further address; end if it cannot go there."""
        while True:
            await self._has_moved.wait()
            self._has_moved.clear()
            async with RecognizedClient(
                self.endpoint, recognition, name=link.client.name
            ) as successor:
                problem = await moving.problem_at(
                    successor, link.target.namespace, recognition, self._clock, self._has_moved
                )
                if problem and not self._has_moved.is_set():
                    log.warning("the connection cannot go on at the new address: %s", problem)
                    return

                if not problem:
                    await link.client.move_to(successor)

            if not problem:
                log.info("the connection goes on at the new address")
                self.take_over(self.endpoint)  # there may be yet another token
                link.notify_moved()

    async def _may_leave(self, link: Link) -> None:
        """Wait until the Target is deleted, and its chaperons are listed or had time to be.

        For a new leader, the Target may be deleted already.
        """
        await self._leave.wait()
        if link.health.reason not in cluster_identity.REFUSED:
            await happens_within(link.chaperons.synced, cleanup.TIMEOUT)

    async def _clean_up(self, link: Link) -> None:
        message = "the Target was deleted"
        link.set_health(LinkHealth(False, LEAVING, message, self._clock.now()))
        await cleanup.clean_up(
            link,
            link.owns,
            self._identity,
            lambda: self._links.remove(link),
            clock=self._clock,
        )
        await happens_within(link.free, cleanup.TIMEOUT)

    async def _follow(
        self, link: Link, prober: Prober, recognition: Recognition, tasks: Supervisor
    ) -> None:
        """Watch the target once its cluster is recognized.

        A target is of use as soon as its lists are complete, not at the next regular probe.
        """
        await recognition.recognized.wait()
        link.recognized_uid = recognition.uid
        link.awaits_quotas = True
        tasks.start(link.chaperons.run(), f"chaperons-{link.node_name}")
        tasks.start(link.summaries.run(), f"summaries-{link.node_name}")
        await link.chaperons.synced.wait()
        await link.summaries.synced.wait()
        if link.is_self:
            await self._may_read_quotas(link, prober, tasks)

        for informer in link.quotas:
            tasks.start(informer.run(), f"{informer.kind.plural}-{link.node_name}")

        for informer in link.quotas:
            await happens_within(informer.answered, _QUOTAS)

        link.awaits_quotas = False
        prober.probe_now()

    async def _may_read_quotas(self, link: Link, prober: Prober, tasks: Supervisor) -> None:
        """Return once the agent may read quotas of its own cluster; until then the link is used
        without them."""
        rights = OwnRights(link, self._clock)
        tasks.start(rights.run(), f"rights-{link.node_name}")
        await happens_within(rights.known, _QUOTAS)
        if not rights.held.is_set():
            link.awaits_quotas = False
            prober.probe_now()
            await rights.held.wait()


def _nobody() -> None:
    """Call nobody."""
