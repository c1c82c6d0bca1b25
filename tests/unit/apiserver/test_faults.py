"""What tests can make of the in-memory API server beyond the contract: faults, time, and counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from tests.apiserver import links
from tests.apiserver.client import MemoryClient
from tests.apiserver.server import TIMEOUT, APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Conflict, Gone, ServerError, Unreachable
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.informer import Informer

pytestmark = pytest.mark.looptime

MAPS = kinds.CONFIG_MAPS
FAULT = ServerError(500, "InternalError", "no")


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    return APIServer("c1", clock)


@pytest.fixture
def client(server: APIServer) -> MemoryClient:
    return server.client()


def config_map(name: str = "a") -> Object:
    return {"metadata": {"name": name, "namespace": "default"}}


@asynccontextmanager
async def following(client: MemoryClient) -> AsyncIterator[Informer]:
    informer = Informer(client, MAPS)
    async with links.following(informer):
        await asyncio.sleep(1)
        yield informer


def elapsed() -> float:
    return asyncio.get_running_loop().time()


@contextmanager
def takes(seconds: float) -> Iterator[None]:
    started = elapsed()
    yield
    assert elapsed() - started == pytest.approx(seconds)


async def test_a_fault_happens_as_often_as_it_says_and_to_what_it_names(
    server: APIServer, client: MemoryClient
) -> None:
    fault = server.fail(FAULT, verb="create", kind=MAPS, times=2)
    await client.list(MAPS)
    await client.create(kinds.SECRETS, config_map())
    for _ in range(2):
        with pytest.raises(ServerError):
            await client.create(MAPS, config_map())

    await client.create(MAPS, config_map())
    assert fault.met == 2
    assert server.count("create", MAPS) == 3
    assert server.count("create") == 4


async def test_a_fault_lasts_until_it_is_cleared(server: APIServer, client: MemoryClient) -> None:
    fault = server.fail(FAULT, when=lambda request: request.name == "a", times=None)
    for _ in range(3):
        with pytest.raises(ServerError):
            await client.get(MAPS, "a", "default")

    fault.clear()
    await client.create(MAPS, config_map())
    await client.get(MAPS, "a", "default")


async def test_an_answer_is_lost_after_the_request_was_carried_out(
    server: APIServer, client: MemoryClient
) -> None:
    server.fail(Unreachable("lost"), after=True)
    with pytest.raises(Unreachable):
        await client.create(MAPS, config_map())

    assert server.find(MAPS, "a", "default")


async def test_a_request_is_given_up_after_the_clients_patience(
    server: APIServer, client: MemoryClient
) -> None:
    server.fail(None, delay=5)
    with takes(5):
        await client.list(MAPS)

    server.freeze()
    with takes(TIMEOUT), pytest.raises(Unreachable, match="timed out"):
        await client.create(MAPS, config_map())

    asyncio.get_running_loop().call_later(3, server.thaw)
    with takes(3):
        await client.create(MAPS, config_map())


async def test_latency_is_on_both_ways(clock: Clock) -> None:
    server = APIServer("c1", clock, latency=lambda: 2.0)
    with takes(4):
        await server.client().list(MAPS)


async def test_a_server_that_stops_loses_the_answers_under_way(clock: Clock) -> None:
    server = APIServer("c1", clock, latency=lambda: 2.0)
    asyncio.get_running_loop().call_later(3, server.stop)
    with pytest.raises(Unreachable):
        await server.client().create(MAPS, config_map())

    assert server.find(MAPS, "a", "default")
    server.start()
    await server.client().get(MAPS, "a", "default")


async def test_a_frozen_server_says_nothing_and_then_all(
    server: APIServer, client: MemoryClient
) -> None:
    async with following(client) as informer:
        server.freeze()
        server.add(MAPS, config_map())
        await asyncio.sleep(10)
        assert len(informer.store) == 0
        server.thaw()
        await asyncio.sleep(0.1)
        assert len(informer.store) == 1
        server.freeze()
        await asyncio.sleep(2 * watching.SILENCE + TIMEOUT)
        assert isinstance(informer.failure, Unreachable)


async def test_a_watch_that_is_silent_is_resumed_by_its_client(
    server: APIServer, client: MemoryClient
) -> None:
    async with following(client) as informer:
        server.silence_watches(MAPS)
        server.add(MAPS, config_map())
        await asyncio.sleep(watching.SILENCE - 2)
        assert len(informer.store) == 0
        await asyncio.sleep(4)
        assert len(informer.store) == 1
        assert informer.failure is None


async def test_an_idle_watch_gets_bookmarks_and_so_survives_a_compaction(
    server: APIServer, client: MemoryClient
) -> None:
    async with following(client) as informer:
        for number in range(3):
            server.add(kinds.SECRETS, config_map(str(number)))

        await asyncio.sleep(100)
        assert informer.silence < watching.SILENCE
        server.compact()
        server.end_watches()
        await asyncio.sleep(10)
        assert (server.count("list"), server.count("watch")) == (1, 2)


async def test_who_missed_what_is_compacted_lists_again(
    server: APIServer, client: MemoryClient
) -> None:
    async with following(client) as informer:
        server.stop()
        await asyncio.sleep(1)
        server.add(MAPS, config_map())
        server.compact()
        server.start()
        await asyncio.sleep(10)
        assert len(informer.store) == 1
        assert server.count("list") == 2


async def test_a_watch_that_is_cut_is_resumed(server: APIServer, client: MemoryClient) -> None:
    async with following(client) as informer:
        server.cut_watches(MAPS)
        server.add(MAPS, config_map())
        await asyncio.sleep(1)
        assert len(informer.store) == 1
        assert (server.count("list"), server.count("watch")) == (1, 2)
        assert len(server.watches()) == 1


async def test_a_continue_token_expires(server: APIServer, client: MemoryClient) -> None:
    for name in ("a", "b"):
        server.add(MAPS, config_map(name))

    page = await client.request("GET", MAPS.path(), query={"limit": "1"})
    server.compact()
    query = {"limit": "1", "continue": page["metadata"]["continue"]}
    with pytest.raises(Gone):
        await client.request("GET", MAPS.path(), query=query)


async def test_clients_share_a_server_and_are_told_apart(server: APIServer) -> None:
    agent, other = server.client("agent"), server.client("other", name="elsewhere")
    await agent.create(MAPS, config_map())
    assert (await other.get(MAPS, "a", "default"))["metadata"]["name"] == "a"
    assert [request.client for request in server.requests] == ["agent", "other"]
    assert (agent.name, other.name) == ("c1", "elsewhere")
    await other.aclose()
    with pytest.raises(Unreachable):
        await other.list(MAPS)


async def test_admission_changes_or_refuses_what_is_written(
    server: APIServer, client: MemoryClient
) -> None:
    def admission(_request: object, obj: Object) -> Object:
        if objects.name(obj) == "b":
            raise Conflict(409, "Conflict", "quota")

        return {**obj, "data": {"admitted": "yes"}}

    server.admit(admission)
    assert (await client.create(MAPS, config_map()))["data"] == {"admitted": "yes"}
    with pytest.raises(Conflict, match="quota"):
        await client.create(MAPS, config_map("b"))


async def test_what_is_read_can_be_changed_without_harm(
    server: APIServer, client: MemoryClient
) -> None:
    made = await client.create(MAPS, config_map())
    made["data"] = {"x": "1"}
    (found,) = server.all(MAPS)
    found["data"] = {"x": "1"}
    assert "data" not in await client.get(MAPS, "a", "default")
