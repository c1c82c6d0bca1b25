"""Speaks with targets on streams: hears which candidates are reserved, says which are allowed.

What is heard shows on the chaperons of the link as if the target had written it, and so does what
is said (`Informer.assume`). All that decides reads it there, and never learns how it came. The
decision itself stays where it was, in the binding of the proxy: a permission that is lost is given
again, and one to which nothing comes back is written to the chaperon.

A target has a stream for each replica of its agent: candidates are reserved in any. Which replica
answers is up to its Service, so more are opened until those that answer are known. A target may do
what it likes, so all of it has a bound: how many streams it has, how often they are opened, how
much comes on them, and what is remembered of that (docs/decisions/0138).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from vnode.api import keys, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.pods import stream_messages
from vnode.pods.source import stream_opening
from vnode.pods.source.heard_reservations import HeardReservations
from vnode.pods.source.stream_opening import OpenChannel
from vnode.pods.source.told_permissions import ToldPermissions
from vnode.pods.stream_channel import FRAMES, Attention, Channel, receive_all, sending
from vnode.pods.stream_messages import (
    CandidateName,
    PermissionNews,
    ReservationNews,
    StreamEnded,
)
from vnode.pods.streams import name_of
from vnode.pods.taking_back import TakingBack
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import sleep_forever, supervise
from vnode.telemetry import metrics

_SEEK_FIRST: Final = (
    0.2  # seconds until another replica is looked for, each time three times as long
)
_SEEK_LAST: Final = 300.0
MOST_STREAMS: Final = 8
"""Streams to one target; replicas beyond that write what they have to say."""
_OPENED_AT_ONCE: Final = 2 * MOST_STREAMS  # to one target
_OPENED_PER_SECOND: Final = 1.0

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _TargetState:
    """What is known of the streams of one link, and what all of them together may do."""

    secret: str
    digest: str
    told: ToldPermissions
    streams: dict[str, HeardReservations] = field(default_factory=dict)  # by replica
    frames: TokenBucket = field(default_factory=FRAMES.bucket)
    openings: TokenBucket = field(
        default_factory=lambda: TokenBucket(_OPENED_PER_SECOND, _OPENED_AT_ONCE)
    )
    attention: Attention = field(default_factory=Attention)
    ended: asyncio.Event = field(default_factory=asyncio.Event)  # set when a stream has ended


class TargetStreams:
    """Keeps streams to all targets that offer them; only the leader does.

    `secret` returns what a link's target knows this cluster by.
    """

    def __init__(
        self, links: Links, secret: Callable[[Link], str], connect: OpenChannel, clock: Clock
    ) -> None:
        self._links = links
        self._secret = secret
        self._connect = connect
        self._clock = clock
        self._targets: dict[Link, _TargetState] = {}
        self._ended = TakingBack(clock)
        self._tasks: KeyedTasks[Link] | None = None  # while `run` runs

    async def run(self) -> None:
        """Keep streams open until cancelled."""
        try:
            async with supervise() as tasks:
                self._tasks = tasks.keyed()
                tasks.start(self._ended.run(), "ended-streams")
                self._links.subscribe(self._on_link, self._on_link_gone)
                await sleep_forever()
        finally:
            self._ended.finish()  # links outlive a leader

    def digest(self, link: Link) -> str:
        """Return what a new candidate is to show, if its target offers streams; else ""."""
        if not link.streams_namespace:
            return ""

        known = self._targets.get(link)
        return known.digest if known else stream_messages.digest(self._secret(link))

    def allow(self, link: Link, candidate: Object) -> bool:
        """Tell a target that a candidate may run; return False if that is to be written instead."""
        target, name = self._targets.get(link), name_of(candidate)
        if target is None or not target.streams or target.told.was_in_vain(name):
            return False

        annotations = objects.annotations(candidate)
        if annotations.get(keys.SOURCE_DIGEST) != target.digest or keys.GANG_MARK in annotations:
            return False

        for stream in target.streams.values():
            stream.outbox.put(name, "allowed")
            stream.discard(name)

        target.told.add(name)
        return True

    def _on_link(self, link: Link) -> None:
        assert self._tasks is not None, "run starts it"
        self._tasks.start(link, lambda: self._follow(link), f"streams-{link.target}")

    def _on_link_gone(self, link: Link) -> None:
        if self._tasks is not None:
            self._tasks.stop(link)

    async def _follow(self, link: Link) -> None:
        """Keep the streams of one link open, while it has candidates."""
        secret = self._secret(link)
        told = ToldPermissions(link.chaperons, self._clock)
        target = _TargetState(secret, stream_messages.digest(secret), told)
        changed = asyncio.Event()

        def on_chaperon(old: Object | None, new: Object | None) -> None:
            changed.set()
            if new is None:
                self._forget(target, objects.latest(old, new))
            else:
                told.note(new)
                self._notice(target, new)

        link.chaperons.subscribe(on_chaperon)
        link.summaries.subscribe(lambda _old, _new: changed.set())
        self._targets[link] = target
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(told.expect(), name=f"told-{link.target}")
                await self._seek(link, target, changed)
        finally:
            if self._targets.get(link) is target:
                del self._targets[link]
                with suppress(KeyError):
                    metrics.AGENT_STREAMS.remove(str(link.target))

            self._ended.add(told.give_up())

    @staticmethod
    def _notice(target: _TargetState, chaperon: Object) -> None:
        name = name_of(chaperon)
        for stream in target.streams.values():
            stream.notice(name)

    @staticmethod
    def _forget(target: _TargetState, chaperon: Object) -> None:
        name = name_of(chaperon)
        target.told.forget(name.uid)
        for stream in target.streams.values():
            stream.forget(name)

    async def _seek(self, link: Link, target: _TargetState, changed: asyncio.Event) -> None:
        """Open streams, to ever more replicas, until cancelled."""
        delay = _SEEK_FIRST
        async with asyncio.TaskGroup() as group:
            while True:
                while not (link.streams_namespace and len(link.chaperons.store)):
                    changed.clear()
                    await changed.wait()

                while len(target.streams) >= MOST_STREAMS:
                    target.ended.clear()
                    await target.ended.wait()

                if wait := target.openings.reserve(self._clock.monotonic()):
                    await self._clock.sleep(wait)

                opened: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
                name = f"stream-{link.target}"
                group.create_task(self._speak(link, target, opened), name=name)
                delay = _SEEK_FIRST if await opened else min(delay * 3, _SEEK_LAST)
                target.ended.clear()
                if await happens_within(target.ended, delay):
                    delay = _SEEK_FIRST

    async def _speak(self, link: Link, target: _TargetState, opened: asyncio.Future[bool]) -> None:
        """Open a stream and keep it; `opened` tells whether it is to a replica that had none."""
        try:
            async with self._connect(link, target.frames) as channel:
                replica = await stream_opening.greet(channel, target.secret)
                if replica not in target.streams:
                    opened.set_result(True)
                    await self._keep(link, target, replica, channel)
        except (VnodeError, StreamEnded) as error:
            log.debug("a stream of %s: %s", link.target, error)
        finally:
            if not opened.done():
                opened.set_result(False)

    async def _keep(self, link: Link, target: _TargetState, replica: str, channel: Channel) -> None:
        stream = target.streams[replica] = HeardReservations()
        _count(link, target)
        try:
            async with sending(channel, stream.outbox, PermissionNews):
                await receive_all(
                    channel,
                    lambda text: self._hear(link, target, stream, text),
                    target.attention,
                )
        finally:
            del target.streams[replica]
            _count(link, target)
            self._take_back(link, target, stream)
            target.ended.set()

    @staticmethod
    def _hear(link: Link, target: _TargetState, stream: HeardReservations, text: str) -> None:
        said = stream_messages.decode(ReservationNews, text)
        forgotten = []
        for name in said.reserved:
            if lost := stream.add(name, is_known=_is_known(link, name)):
                forgotten.append(lost)

            link.chaperons.assume(name.key, name.uid, keys.IS_RESERVED, "true")

        _withdraw(link, target, forgotten)
        for name in said.withdrawn:
            stream.discard(name)

        _withdraw(link, target, said.withdrawn)
        for name in said.confirmed:
            target.told.confirm(name)

    def _take_back(self, link: Link, target: _TargetState, stream: HeardReservations) -> None:
        """Forget what a stream said that has ended, and that anything was heard there."""
        self._ended.add(_withdrawn(link, target, stream.names()))
        self._ended.add(target.told.give_up())


def _is_known(link: Link, name: CandidateName) -> bool:
    chaperon = link.chaperons.store.get(name.key)
    return chaperon is not None and objects.uid(chaperon) == name.uid


def _withdraw(link: Link, target: _TargetState, names: Iterable[CandidateName]) -> None:
    """Show candidates as not reserved, but for those that another stream says are."""
    for name in names:
        if not any(name in other for other in target.streams.values()):
            link.chaperons.restore(name.key, name.uid, keys.IS_RESERVED)


def _withdrawn(link: Link, target: _TargetState, names: Iterable[CandidateName]) -> Iterator[None]:
    """Do the same little by little, as this is iterated over."""
    for name in names:
        _withdraw(link, target, (name,))
        yield


def _count(link: Link, target: _TargetState) -> None:
    metrics.AGENT_STREAMS.labels(str(link.target)).set(len(target.streams))
