"""A target may say on streams what it likes: what the source's agent keeps of it has a bound."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager, nullcontext
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests import background
from tests.apiserver import links
from tests.computing import BusyClock
from tests.unit.pods.stream_pair import DIGEST, SECRET, StreamPair
from tests.unit.pods.target_side import NAMESPACE, SETTLED
from vnode.api import keys, objects
from vnode.kube.informer import Informer
from vnode.pods import stream_channel, stream_messages
from vnode.pods.source import heard_reservations, target_streams
from vnode.pods.source.target_streams import TargetStreams
from vnode.pods.stream_channel import Outbox, receive_all, sending
from vnode.pods.stream_messages import (
    CandidateName,
    PermissionNews,
    ReservationNews,
    StreamEnded,
    Welcome,
)
from vnode.pods.streams import SourceStreams, name_of

pytestmark = pytest.mark.looptime


class HostileTarget:
    """Answers each stream as another replica, then says `messages`, and reads nothing."""

    def __init__(self, messages=(), replica="replica-{}"):
        self.opened = 0
        self.streams = 0
        self.refused = []  # why a stream was not kept
        self._messages = messages
        self._replica = replica
        self._waiting = []  # what is still to be said on each stream
        self._first: Any = None  # the channel of the first stream

    def say(self, text):
        """Send something on the first stream."""
        self._first.later.put_nowait(text)

    def end(self):
        """End the first stream."""
        self._first.later.put_nowait(None)

    @asynccontextmanager
    async def connect(self, _link, _frames):
        number, self.opened = self.opened, self.opened + 1
        welcome = msgspec.json.encode({"replica": self._replica.format(number)}).decode()
        self.streams += 1
        try:
            channel = _HostileChannel([welcome, *self._messages])
            self._first = self._first or channel
            yield channel
        except StreamEnded as error:
            self.refused.append(str(error))
            raise
        finally:
            self.streams -= 1


class _HostileChannel:
    def __init__(self, messages):
        self._messages = iter(messages)
        self._sent = itertools.count()
        self.later = asyncio.Queue()

    async def send(self, _text):
        if next(self._sent):
            await asyncio.Future()

    async def receive(self):
        await asyncio.sleep(0.001)
        for message in self._messages:
            return message

        if (message := await self.later.get()) is None:
            raise StreamEnded("enough")

        return message


@asynccontextmanager
async def source_of(pair, target, *, is_connected=False):
    """Yield the streams of a source to that target, whose link may be connected already."""
    streams = TargetStreams(pair.links, lambda _link: SECRET, target.connect, pair.clock)
    async with (
        pair.cluster.informed(),
        nullcontext() if is_connected else links.connected(pair.link),
        background.running(streams.run()),
    ):
        pair.links.add(pair.link)
        await asyncio.sleep(SETTLED)
        yield streams


@pytest.fixture
async def pair(clock):
    return StreamPair(clock)


def invented(count, start=0):
    return tuple(CandidateName(f"ns/no-{n}", f"u{n}") for n in range(start, start + count))


def news(**lists):
    return stream_messages.encode(ReservationNews(**lists))


def shown(pair, uids):
    """Return how many objects are kept as reserved."""
    return sum(pair.link.chaperons.is_assumed(uid, keys.IS_RESERVED) for uid in set(uids))


async def test_a_target_that_invents_replicas_and_names_has_a_bound(pair, monkeypatch):
    assumed = []
    assume = Informer.assume

    def note(informer, key, uid, annotation, value):
        assumed.append(uid)
        assume(informer, key, uid, annotation, value)

    monkeypatch.setattr(Informer, "assume", note)
    pair.candidate()
    count = 3 * heard_reservations.MOST_EARLY // stream_messages.MOST
    size = stream_messages.MOST
    target = HostileTarget([news(reserved=invented(size, start=n * size)) for n in range(count)])
    async with source_of(pair, target):
        await asyncio.sleep(20)  # less than it takes until the target must have read
        assert target.streams == target_streams.MOST_STREAMS
        assert len(set(assumed)) == count * size
        shown = [
            uid for uid in set(assumed) if pair.link.chaperons.is_assumed(uid, keys.IS_RESERVED)
        ]
        assert len(shown) == heard_reservations.MOST_EARLY

    assert not any(pair.link.chaperons.is_assumed(uid, keys.IS_RESERVED) for uid in assumed)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"reserved": [["n/" + "k" * 400, "u"]]}, id="key"),
        pytest.param({"reserved": [["n/k", "u" * 401]]}, id="uid"),
        pytest.param({"withdrawn": [["n/k", "u" * 401]]}, id="withdrawn"),
        pytest.param({"confirmed": [["n/k", "u" * 401]]}, id="confirmed"),
    ],
)
async def test_a_name_that_no_object_has_ends_the_stream(pair, message):
    pair.candidate()
    target = HostileTarget([msgspec.json.encode(message).decode()])
    async with source_of(pair, target):
        assert target.refused
        assert "400" in target.refused[0]


async def test_a_replica_with_a_name_of_megabytes_is_none(pair):
    pair.candidate()
    target = HostileTarget(replica="x" * 4_000_000)
    async with source_of(pair, target):
        assert not target.streams
        assert "300" in target.refused[0]


async def test_a_target_that_ends_each_stream_is_asked_once_a_second(pair):
    pair.candidate()
    target = HostileTarget(["nonsense"])
    async with source_of(pair, target):
        await asyncio.sleep(100)
        assert 20 < target.opened < 130


async def test_a_target_that_does_not_read_loses_its_stream(pair):
    pod = pair.candidate()
    name = CandidateName(f"{NAMESPACE}/web", objects.uid(pair.cluster.chaperon()))
    target = HostileTarget([news(reserved=(name,))])
    assert objects.name(pod)
    async with source_of(pair, target):
        assert target.streams
        await asyncio.sleep(100)
        assert "the other side does not read" in target.refused


async def test_what_is_reserved_before_its_chaperon_is_known_counts_once_it_is(pair):
    pair.candidate("first")
    held = heard_reservations.HeardReservations()
    async with pair.running():
        name = name_of(pair.shown("first"))
        assert held.add(name, is_known=False) is None
        assert not len(held.outbox)  # the target would write what is not acknowledged
        held.notice(CandidateName("ns/another", "u"))
        assert not len(held.outbox)
        held.notice(name)
        assert await held.outbox.take() == {"acknowledged": (name,)}
        assert name in held


def test_the_oldest_that_are_not_known_are_forgotten_first():
    held = heard_reservations.HeardReservations()
    first, *others = invented(heard_reservations.MOST_EARLY + 1)
    held.add(first, is_known=False)
    assert [lost for name in others if (lost := held.add(name, is_known=False))] == [first]
    assert first not in held
    assert len(held) == heard_reservations.MOST_EARLY


def test_nothing_is_said_of_a_chaperon_that_is_gone():
    held = heard_reservations.HeardReservations()
    (name,) = invented(1)
    held.add(name, is_known=True)
    held.forget(name)
    assert (len(held), len(held.outbox)) == (0, 0)


async def test_an_outbox_that_nobody_empties_ends_the_stream(monkeypatch):
    monkeypatch.setattr(stream_channel, "MOST_WAITING", 10)
    outbox = Outbox()
    for name in invented(30):
        outbox.put(name, "withdrawn")

    assert len(outbox) == 0
    channel = _HostileChannel([])
    with pytest.raises(StreamEnded, match="does not read"):
        async with sending(channel, outbox, PermissionNews):
            await receive_all(channel, lambda _text: None)


def test_replicas_are_called_as_in_their_leases():
    longest = f"{'h' * 253}_4026531836_4194304"
    said = stream_messages.encode(Welcome(longest))
    assert stream_messages.decode(Welcome, said).replica == longest


async def test_what_a_stream_said_of_many_is_taken_back_little_by_little(pair):
    """Each has its subscribers; a target may end its streams whenever it likes."""
    pods = [pair.candidate(f"web-{number}") for number in range(stream_messages.MOST)]
    pair.clock = BusyClock()  # by which three are as many as there may be in a step
    target = HostileTarget()
    async with source_of(pair, target):
        names = [name_of(pair.shown(objects.name(pod))) for pod in pods]
        target.say(news(reserved=tuple(names)))
        await asyncio.sleep(SETTLED)
        uids = [name.uid for name in names]
        assert shown(pair, uids) == len(names)
        left = []

        async def look():
            while (count := shown(pair, uids)) and len(left) < 10_000:
                left.append(count)
                await asyncio.sleep(0)

        target.end()
        await look()

    assert shown(pair, uids) == 0
    assert max(a - b for a, b in pairwise([*left, 0])) < len(names) / 10


async def test_what_was_told_is_taken_back_as_a_term_ends(pair):
    """Links outlive it, and the next leader is to find what the target knows."""
    pods = [pair.candidate(f"web-{number}") for number in range(stream_messages.MOST)]
    target = HostileTarget()
    async with links.connected(pair.link):
        async with source_of(pair, target, is_connected=True) as streams:
            names = [name_of(pair.shown(objects.name(pod))) for pod in pods]
            target.say(news(reserved=tuple(names[:100])))
            await asyncio.sleep(SETTLED)
            for pod in pods[100:]:
                assert streams.allow(pair.link, pair.shown(objects.name(pod)))

        uids = [name.uid for name in names]
        assert not any(pair.link.chaperons.is_assumed(uid, keys.IS_ALLOWED) for uid in uids)
        assert shown(pair, uids) == 0


async def test_what_a_source_was_told_is_taken_back_little_by_little(pair):
    pods = [pair.candidate(f"web-{number}") for number in range(stream_messages.MOST)]
    streams = SourceStreams(pair.cluster.chaperons, BusyClock())
    async with pair.cluster.informed(), background.running(streams.ended.run()):
        chaperons = [pair.cluster.chaperon(objects.name(pod)) for pod in pods]
        with streams.open(DIGEST):
            for chaperon in chaperons:
                assert streams.reserve(chaperon)

        def reserved():
            store = pair.cluster.chaperons
            return sum(store.is_assumed(objects.uid(each), keys.IS_RESERVED) for each in chaperons)

        left = []
        with streams.open(DIGEST):
            streams.reserve(chaperons[-1])  # anew, by another stream
            while (count := reserved()) > 1 and len(left) < 10_000:
                left.append(count)
                await asyncio.sleep(0)

            await asyncio.sleep(SETTLED)
            assert reserved() == 1

    assert max(a - b for a, b in pairwise([*left, 0])) < len(pods) / 10
