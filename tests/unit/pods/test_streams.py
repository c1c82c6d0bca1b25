"""Agents of a source and a target tell each other what else is written: with streams, and without.

Both ends are real, with an API server in memory; what a stream carries takes a millisecond. What is
said must come to the same as what is written, whatever becomes of the stream.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager

import pytest

from tests import background
from tests.apiserver import links
from tests.memory_streams import MemoryPipe, MemoryStreams, StreamPeer
from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects, summary_reports
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.pods import delegate, reservations, stream_messages
from vnode.pods.reservations import TIMEOUT, Refusal, Reservations
from vnode.pods.source import told_permissions
from vnode.pods.source.target_streams import TargetStreams
from vnode.pods.stream_messages import CandidateName, Decisions, Hello, StreamEnded
from vnode.pods.streams import SourceStreams
from vnode.pods.target import stream_server
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

SECRET = "of c1"
DIGEST = stream_messages.digest(SECRET)
SOURCE, TARGET = Identity("c1", "uid-of-c1"), TargetKey(NAMESPACE, "c2")


class Pair:
    """A source and its target: the agents' ends of streams, and what decides with them."""

    def __init__(self, clock):
        self.clock = clock
        self.cluster = TargetCluster(clock)
        offers = summary_reports.listed({keys.AGENT_VERSION: "1", keys.STREAMS: "vnode"})
        metadata = {"name": keys.SUMMARY_NAME, "annotations": offers}
        self.cluster.server.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata})
        self.streams = SourceStreams(self.cluster.chaperons)
        agent = self.cluster.server.client("agent")
        self.reservations = Reservations(agent, self.cluster.chaperons, streams=self.streams)
        self.is_up = True
        self.wires = MemoryStreams({"c2": StreamPeer("r1", self._reached)})
        self.link = links.link_to(self.cluster.server, TARGET, SOURCE, clock)
        self.links = Links()
        self.source = TargetStreams(self.links, lambda _link: SECRET, self.wires.connect, clock)

    def _reached(self):
        return self.streams if self.is_up else None

    @asynccontextmanager
    async def running(self):
        async with (
            self.cluster.informed(),
            links.connected(self.link),
            background.running(self.source.run()),
        ):
            self.links.add(self.link)
            await asyncio.sleep(SETTLED)
            yield

    def lose_streams(self):
        """Cut all streams; none can be opened any more."""
        self.is_up = False
        self.wires.cut("c2")

    def candidate(self, name="web", digest=DIGEST, **annotations):
        """Store a new chaperon of the source; return its delegate."""
        labels = {keys.PARENT_UID: f"parent-of-{name}"}
        labels |= {keys.PARENT_CLUSTER_NAME: "c1", keys.PARENT_CLUSTER_UID: SOURCE.uid}
        annotations |= {keys.SOURCE_DIGEST: digest, keys.PARENT_NAMESPACE: NAMESPACE}
        annotations |= {keys.PARENT_NAME: name, keys.TARGET: str(TARGET)}
        annotations |= {keys.PARENT_CLUSTER_UID: SOURCE.uid}
        return delegate.build(self.cluster.send(name, labels=labels, annotations=annotations))

    async def ask(self, pod):
        """Begin to hold a place."""
        task = asyncio.create_task(self.reservations.allowed(pod))
        await asyncio.sleep(SETTLED)
        return task

    def shown(self, name="web"):
        """Return what the source's store shows of a chaperon."""
        return self.link.chaperons.store.get(objects.join_key(NAMESPACE, name)) or {}

    def shows(self, annotation, name="web"):
        return objects.annotations(self.shown(name)).get(annotation)

    @property
    def patches(self):
        return self.cluster.count("patch", "podchaperons")


@pytest.fixture
async def pair(clock):
    return Pair(clock)


async def test_a_pod_is_reserved_and_allowed_without_a_write(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.shows(keys.IS_RESERVED) == "true"
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        assert pair.patches == 0


async def test_reservations_are_written_once_the_stream_ends(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.cluster.noted(keys.IS_RESERVED) is None
        pair.lose_streams()
        await asyncio.sleep(SETTLED)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"
        assert pair.shows(keys.IS_RESERVED) == "true"
        assert not task.done()
        task.cancel()


async def test_a_source_that_has_heard_and_decides_later_needs_no_write(pair):
    """In a burst of pods a source is seconds behind."""
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        await asyncio.sleep(2 * reservations.SLOW)
        assert pair.patches == 0
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        assert pair.patches == 0


async def test_a_source_that_stays_silent_gets_it_in_writing(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        await asyncio.sleep(reservations.SILENT)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"
        assert pair.patches == 1
        await asyncio.sleep(reservations.SILENT)
        assert pair.patches == 1
        task.cancel()


async def test_a_source_that_does_not_hear_gets_it_in_writing_sooner(pair):
    pod = pair.candidate()
    async with pair.cluster.informed():
        with pair.streams.open(DIGEST) as stream:
            task = await pair.ask(pod)
            assert (await stream.outbox.take())["reserved"]
            await asyncio.sleep(reservations.SLOW)
            assert pair.cluster.noted(keys.IS_RESERVED) == "true"
            task.cancel()


async def test_what_one_stream_has_heard_counts_while_that_is_open(pair):
    pod = pair.candidate()
    async with pair.cluster.informed():
        with pair.streams.open(DIGEST):
            with pair.streams.open(DIGEST) as gone:
                task = await pair.ask(pod)
                (name,) = (await gone.outbox.take())["reserved"]
                stranger = CandidateName(name.key, "of another")
                pair.streams.note_heard(DIGEST, gone, [name, stranger])
                assert gone.heard == {name}

            await asyncio.sleep(reservations.SLOW)
            assert pair.cluster.noted(keys.IS_RESERVED) == "true"
            task.cancel()


async def test_a_place_that_is_given_back_is_none_for_the_source(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        pair.cluster.annotate(placeholder="true")
        with pytest.raises(Refusal):
            await asyncio.wait_for(task, 1)

        await asyncio.sleep(SETTLED)
        assert pair.shows(keys.IS_RESERVED) is None


async def test_nobody_who_was_not_allowed_in_time_stays_reserved(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        with pytest.raises(Refusal, match="did not allow"):
            await asyncio.wait_for(task, TIMEOUT + 1)

        await asyncio.sleep(SETTLED)
        assert pair.shows(keys.IS_RESERVED) is None
        assert pair.cluster.noted(keys.IS_RESERVED) is None


async def test_a_permission_that_shows_no_effect_is_written(pair):
    pair.candidate()
    async with pair.running():
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.sleep(told_permissions.SLOW - 1)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        await asyncio.sleep(2)
        assert pair.shows(keys.IS_ALLOWED) is None
        assert not pair.source.allow(pair.link, pair.shown())


async def test_one_that_is_confirmed_is_not_until_the_stream_ends(pair):
    """A pod that starts beside many others is reported half a minute after it was bound."""
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        await asyncio.sleep(5 * told_permissions.SLOW)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        pair.lose_streams()
        await asyncio.sleep(0.1)
        assert pair.shows(keys.IS_ALLOWED) is None
        assert not pair.source.allow(pair.link, pair.shown())


async def test_what_was_bound_stays_allowed_when_the_stream_ends(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        pair.cluster.server.change(
            *(kinds.POD_CHAPERONS, "web", NAMESPACE),
            lambda chaperon: chaperon.update(status={"phase": "Running"}),
        )
        await asyncio.sleep(SETTLED)
        pair.wires.cut("c2")
        await asyncio.sleep(SETTLED)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        assert pair.patches == 0


async def test_one_that_did_is_not(pair):
    pair.candidate()
    async with pair.running():
        assert pair.source.allow(pair.link, pair.shown())
        pair.cluster.server.change(
            *(kinds.POD_CHAPERONS, "web", NAMESPACE),
            lambda chaperon: chaperon.update(status={"phase": "Running"}),
        )
        await asyncio.sleep(told_permissions.SLOW + 1)
        assert pair.shows(keys.IS_ALLOWED) == "true"


async def test_permissions_are_written_once_the_stream_ends(pair):
    pair.candidate()
    async with pair.running():
        assert pair.source.allow(pair.link, pair.shown())
        pair.lose_streams()
        await asyncio.sleep(0.1)
        assert pair.shows(keys.IS_ALLOWED) is None
        assert not pair.source.allow(pair.link, pair.shown())


async def test_a_stream_that_ended_is_opened_again_and_says_all_that_holds(pair):
    pod = pair.candidate()
    async with pair.running():
        pair.wires.cut("c2")
        task = await pair.ask(pod)
        assert pair.wires.opened >= 2
        assert pair.shows(keys.IS_RESERVED) == "true"
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)


async def test_a_source_whose_agent_ends_leaves_nothing_assumed_that_is_not_so(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.shows(keys.IS_RESERVED)
        pair.links.remove(pair.link)
        await asyncio.sleep(SETTLED)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"  # for the next one, in writing
        task.cancel()


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({"digest": "of another source"}, id="of-another-source"),
        pytest.param({keys.GANG_MARK: "{}"}, id="of-a-gang"),
    ],
)
async def test_other_candidates_are_written(pair, annotations):
    pair.candidate("first")  # else there is no stream
    pod = pair.candidate(**annotations)
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"
        assert not pair.source.allow(pair.link, pair.shown())
        task.cancel()


async def test_without_a_candidate_there_is_no_stream(pair):
    async with pair.running():
        assert pair.wires.opened == 0


async def test_replicas_that_are_known_are_asked_ever_more_rarely(pair):
    pair.candidate()
    async with pair.running():
        await asyncio.sleep(600)
        assert 5 < pair.wires.opened < 20


# Who speaks with a target.


async def said(pair, *messages, replica="r1"):
    """Tell the target's agent this; return why it ended the stream, "" if it did not."""
    pipe = MemoryPipe()
    near, far = pipe.ends()
    known = asyncio.Event()
    task = asyncio.create_task(stream_server.serve(pair.streams, far, replica, known.set))
    for message in messages:
        await near.send(message if isinstance(message, str) else stream_messages.encode(message))

    await asyncio.sleep(SETTLED)
    has_ended = task.done()
    pipe.cut()
    await asyncio.wait({task})
    return str(task.exception()) if has_ended else ""


async def test_a_stranger_is_told_nothing_and_can_allow_nothing(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        name = CandidateName(f"{NAMESPACE}/web", objects.uid(pair.shown()))
        for guess in (DIGEST, "", SECRET + "x"):  # who may list chaperons knows the digest
            end = await said(pair, Hello(guess), Decisions((name,)))
            assert end == "the source has no PodChaperon here"

        assert not task.done()
        task.cancel()


async def test_a_source_can_allow_none_of_another_source(pair):
    pair.candidate("ours")
    theirs = pair.candidate(digest=stream_messages.digest("of c9"))
    async with pair.running():
        task = await pair.ask(theirs)
        chaperon = pair.cluster.chaperon()
        name = CandidateName(f"{NAMESPACE}/web", objects.uid(chaperon))
        assert await said(pair, Hello(SECRET), Decisions((name,))) == ""
        assert not task.done()
        task.cancel()


@pytest.mark.parametrize("text", ["", "{}", "[", '{"secret": 1}', "null", '{"secret": null}'])
async def test_whoever_begins_with_nonsense_is_not_known(pair, text):
    pair.candidate()
    async with pair.running():
        assert "no Hello" in await said(pair, text)


async def test_whoever_says_nothing_is_not_waited_for(pair):
    pair.candidate()
    async with pair.running():
        _near, far = MemoryPipe().ends()
        with pytest.raises(StreamEnded, match="did not say who it is"):
            await asyncio.wait_for(stream_server.serve(pair.streams, far, "r1", lambda: None), 11)


async def test_a_source_has_a_bounded_number_of_streams(pair):
    pair.candidate()
    async with pair.running():
        with ExitStack() as stack:
            for _ in range(7):  # and one is open
                stack.enter_context(pair.streams.open(DIGEST))

            assert await said(pair, Hello(SECRET)) == "8 streams of this source are open"


def test_a_message_has_a_bounded_number_of_candidates():
    name = CandidateName("shop/web", "u")
    whole = stream_messages.encode(Decisions((name,) * stream_messages.MOST))
    assert stream_messages.decode(Decisions, whole).allowed
    with pytest.raises(StreamEnded, match="length"):
        stream_messages.decode(
            Decisions, stream_messages.encode(Decisions((name,) * (stream_messages.MOST + 1)))
        )


async def test_a_burst_is_told_in_messages_of_that_size(pair):
    pods = [pair.candidate(f"web-{number}") for number in range(2 * stream_messages.MOST + 1)]
    async with pair.running():
        tasks = [asyncio.create_task(pair.reservations.allowed(pod)) for pod in pods]
        await asyncio.sleep(SETTLED)
        for pod in pods:
            assert pair.source.allow(pair.link, pair.shown(objects.name(pod)))

        await asyncio.wait_for(asyncio.gather(*tasks), 1)
        assert pair.patches == 0


def test_a_secret_is_of_one_key_and_one_target():
    made = {
        stream_messages.secret(key, target)
        for key in (b"a" * 32, b"b" * 32)
        for target in ("default/c2", "default/c3")
    }
    assert len(made) == 4


@pytest.mark.parametrize("namespace", ["", "..", "a/b", "A", "x" * 64, "a?b"])
def test_a_target_cannot_choose_another_path(namespace):
    with pytest.raises(Exception, match="no name of a namespace"):
        stream_messages.path(namespace)
