"""Publishes what targets have free as scores: AddOnPlacementScores, ClusterScores, or both.

Targets report once a second at most; all scores are computed anew a few seconds after a report,
since relative ones depend on all targets, and those that differ are written; `published` says when.
A target that does not answer, or whose agent is silent, is written no more: its scores end. Objects
of these names that somebody else has made are left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import AlreadyExists, Conflict, Denied, NotFound
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.served_kinds import ServedKind
from vnode.runtime.supervisor import supervise
from vnode.runtime.write_limits import WriteLimiter
from vnode.scores import published, room
from vnode.scores.config import ScoreKind, ScoresConfig
from vnode.scores.published import ScorePlace
from vnode.scores.room import ReportedRoom
from vnode.telemetry import audit

SETTLING: Final = 5.0
"""Seconds in which reports are awaited, to be looked at together."""
_RETRY: Final = 300.0  # seconds after what others have to mend
_CURE: Final = (
    "bind ClusterRole vnode-published-scores to the agent (scores.publish of the chart); it is "
    "noticed within minutes"
)

log = logging.getLogger(__name__)


class ScorePublisher:
    """Publishes for one term of a leader.

    `report_of` returns what a link's target reports, None if it does not; `cluster_of` what its
    inventory says that Open Cluster Management calls it, "" if it does not; `find_target` the
    object of a Target, None if it does not exist.
    """

    def __init__(
        self,
        client: Client,
        links: Links,
        config: ScoresConfig,
        *,
        report_of: Callable[[Link], ReportedRoom | None],
        cluster_of: Callable[[Link], str],
        find_target: Callable[[TargetKey], Object | None],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._config = config
        self._report_of = report_of
        self._cluster_of = cluster_of
        self._find_target = find_target
        self._events = events
        self._clock = clock
        self._changed = asyncio.Event()
        self._scores: Mapping[str, Mapping[str, int]] = {}  # by node
        self._known: dict[ScorePlace, Object | None] = {}  # as we have last read or written it
        # When (monotonic) to try again what others have to mend.
        self._blocked: dict[ScorePlace, float] = {}
        self._served: dict[ScoreKind, ServedKind] = {}
        self._limiter: WriteLimiter[ScorePlace] = WriteLimiter("scores", write_limits.SCORES, clock)
        self._controller: Controller[str] = Controller(
            "published-scores", self._reconcile, subject=self._subject, workers=2
        )

    async def run(self) -> None:
        """Publish until cancelled."""
        self._links.subscribe(self._on_link, self._on_link_gone)
        async with supervise() as tasks:
            self._watch(tasks.keyed())
            tasks.start(self._compute(), "scores-of-reports")
            await self._controller.run()

    def _watch(self, tasks: KeyedTasks[str]) -> None:
        for kind in self._config.publish:
            served = ServedKind(self._client, published.KINDS[kind], self._on_kind)
            self._served[kind] = served
            served.watch(tasks)

    def _on_kind(self) -> None:
        self._blocked.clear()
        self._changed.set()

    def _on_link(self, link: Link) -> None:
        link.summaries.subscribe(lambda _old, _new: self._changed.set())
        link.on_health(self._changed.set)
        self._changed.set()

    def _on_link_gone(self, link: Link) -> None:
        self._changed.set()
        self._controller.add(link.node_name)

    async def _compute(self) -> None:
        """Compute the scores of all targets after reports, and have those written that differ."""
        for served in self._served.values():
            await served.wait_answered()

        while True:
            await self._changed.wait()
            await self._clock.sleep(SETTLING)
            self._changed.clear()
            reports = {
                link.node_name: report
                for link in self._links
                if (report := self._report_of(link)) is not None
            }
            own = {link.node_name: link.target.namespace for link in self._links}
            self._scores = room.scores(reports, self._config.resources, own)
            for node in self._scores:
                self._controller.add(node)

    def _subject(self, node: str) -> audit.Subject:
        link = self._links.get(node)
        return audit.of_target(None if link is None else link.target)

    async def _reconcile(self, node: str) -> float | None:
        """Publish the scores of one target, unless it is lost or has none."""
        link = self._links.get(node)
        if link is None:
            return await self._forget(node)

        scores = self._scores.get(node)
        if not scores or self._report_of(link) is None:
            return None

        waits = []
        for kind in self._config.publish:
            where = published.place(kind, link.target, self._cluster_of(link))
            if where is not None:
                waits.append(await self._try_publish(kind, where, scores))

        return min(waits, default=None)

    async def _try_publish(
        self, kind: ScoreKind, where: ScorePlace, scores: Mapping[str, int]
    ) -> float:
        """Publish scores, or tell why not; return the seconds until that is due again."""
        blocked = self._blocked.get(where, 0.0) - self._clock.monotonic()
        if blocked > TICK:
            return blocked

        self._blocked.pop(where, None)
        problem = self._problem(kind)
        return self._tell(where, problem) if problem else await self._publish(where, scores)

    def _problem(self, kind: ScoreKind) -> str:
        """Return why objects of a kind cannot be written, "" if they can, as far as known."""
        served = self._served[kind]
        if isinstance(served.failure, Denied):
            return f"{served.failure}; {_CURE}"

        if served.is_served:
            return ""

        resource, version = served.kind.resource, served.kind.version
        return f"this cluster does not serve {resource} of version {version}: install it"

    async def _publish(self, where: ScorePlace, scores: Mapping[str, int]) -> float:
        try:
            if where not in self._known:
                self._known[where] = await self._read(where)

            present = self._known[where]
            if present is not None and not published.is_ours(present):
                return self._tell(where, "it is not vnode's: delete it, and it is made anew")

            now = self._clock.now()
            written = published.said(where.kind, present) if present is not None else None
            wait = published.wait(written, scores, now) or self._limiter.take(where)
            if wait:
                return wait

            self._known[where] = await self._write(where, present, scores)
        except Denied as error:
            return self._tell(where, f"{error}; {_CURE}")
        except (AlreadyExists, Conflict, NotFound) as error:
            log.info("%s %s: %s; it is read again", where.kind.kind, where.name, error)
            known = self._known.pop(where, None)
            return _RETRY if known is None and isinstance(error, NotFound) else 1.0

        return published.VALID - published.RENEWED

    async def _read(self, where: ScorePlace) -> Object | None:
        try:
            return await self._client.get(where.kind, where.name, where.namespace or None)
        except NotFound:
            return None

    async def _write(
        self, where: ScorePlace, present: Object | None, scores: Mapping[str, int]
    ) -> Object:
        """Create the object, or change it; of one with a status both, when it is new."""
        now, namespace = self._clock.now(), where.namespace or None
        wanted = published.body(where, scores, now)
        if present is None:
            present = await self._client.create(where.kind, wanted, namespace)
            if not where.has_status:
                return present

        if where.has_status:
            patch = objects.status_patch(present, published.section(scores, now))
            return await self._client.patch(
                where.kind, where.name, patch, namespace, subresource="status"
            )

        patch = objects.if_unchanged({"spec": wanted["spec"]}, present)
        return await self._client.patch(where.kind, where.name, patch, namespace)

    async def _forget(self, node: str) -> float | None:
        """Delete the ClusterScore of a Target that is gone; other objects end by themselves."""
        for where in [each for each in self._known if each.target.node_name == node]:
            target = self._find_target(where.target)
            if target is not None and not objects.is_terminating(target):
                return _RETRY  # it is only being connected anew

            obj = self._known.pop(where)
            self._limiter.forget(where)
            self._blocked.pop(where, None)
            if where.kind is kinds.CLUSTER_SCORES and obj is not None and published.is_ours(obj):
                await self._client.discard(where.kind, obj)

        return None

    def _tell(self, where: ScorePlace, text: str) -> float:
        """Tell on the Target why its scores are not published; return when to try again."""
        self._known.pop(where, None)
        self._blocked[where] = self._clock.monotonic() + _RETRY
        key = objects.join_key(where.namespace, where.name)
        message = f"{where.kind.kind.lower()}/{key} is not written: {text}"
        log.warning("%s: %s", where.target, message)
        target = self._find_target(where.target)
        if target is not None:
            kind = kinds.scoped(kinds.TARGETS, where.target.namespace)
            about = objects.reference(target, kind.kind, kind.api_version)
            self._events.event(about, WARNING, "ScoresNotPublished", message)

        return _RETRY
