"""Who speaks with a target's agent on a stream: what strangers say counts for nothing."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from tests.memory_streams import MemoryPipe
from tests.unit.kube.test_websocket_frames import PONG, flooding
from tests.unit.pods.stream_pair import DIGEST, SECRET, StreamPair
from tests.unit.pods.target_side import NAMESPACE, SETTLED
from vnode.api import objects
from vnode.kube import websockets
from vnode.pods import stream_messages
from vnode.pods.stream_channel import FRAMES, WebSocketChannel, receive_all
from vnode.pods.stream_messages import CandidateName, Hello, PermissionNews, StreamEnded
from vnode.pods.target import stream_server
from vnode.pods.target.stream_server import StreamPages

pytestmark = pytest.mark.looptime


@pytest.fixture
async def pair(clock):
    return StreamPair(clock)


async def said(pair, *messages, replica="r1"):
    """Tell the target's agent this; return why it ended the stream, "" if it did not."""
    pipe = MemoryPipe()
    near, far = pipe.ends()
    known = set[str]()
    task = asyncio.create_task(stream_server.serve(pair.streams, far, replica, known.add))
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
            end = await said(pair, Hello(guess), PermissionNews((name,)))
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
        assert await said(pair, Hello(SECRET), PermissionNews((name,))) == ""
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
            await asyncio.wait_for(
                stream_server.serve(pair.streams, far, "r1", lambda _digest: None), 11
            )


async def test_a_source_has_a_bounded_number_of_streams(pair):
    pair.candidate()
    async with pair.running():
        with ExitStack() as stack:
            for _ in range(7):  # and one is open
                stack.enter_context(pair.streams.open(DIGEST))

            assert await said(pair, Hello(SECRET)) == "8 streams of this source are open"


@pytest.mark.looptime(False)
async def test_pongs_without_end_end_the_stream(pair):
    """By a real WebSocket, on which the source's agent is the one that is flooded."""
    async with (
        asyncio.timeout(20),
        flooding((b"", PONG)) as client,
        websockets.connect(
            *(client, "/streams", (), stream_messages.PROTOCOL),
            largest=stream_messages.LARGEST,
            limit=FRAMES,
        ) as socket,
    ):
        with pytest.raises(StreamEnded):
            await receive_all(WebSocketChannel(socket), lambda _text: None)


@pytest.mark.looptime(False)
async def test_a_source_that_floods_its_target_is_broken_off(pair):
    """Even one whose messages say something: no agent sends so many."""
    pair.candidate()
    pages = StreamPages(pair.streams, "r1")
    async with (
        asyncio.timeout(20),
        pair.cluster.informed(),
        TestServer(pages.app()) as server,
        aiohttp.ClientSession() as session,
        session.ws_connect(server.make_url(stream_messages.PATH)) as socket,
    ):
        await socket.send_str(stream_messages.encode(Hello(SECRET)))
        assert (await socket.receive()).type is aiohttp.WSMsgType.TEXT
        with suppress(ConnectionError):
            while not socket.closed:
                await socket.send_str(stream_messages.encode(PermissionNews()))
                await asyncio.sleep(0)

        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSED


def test_a_message_has_a_bounded_number_of_candidates():
    name = CandidateName("shop/web", "u")
    whole = stream_messages.encode(PermissionNews((name,) * stream_messages.MOST))
    assert stream_messages.decode(PermissionNews, whole).allowed
    with pytest.raises(StreamEnded, match="length"):
        stream_messages.decode(
            PermissionNews,
            stream_messages.encode(PermissionNews((name,) * (stream_messages.MOST + 1))),
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
