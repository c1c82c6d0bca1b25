"""Requests to a server that says slow down wait together, in turns, and no longer than they may."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import pytest

from tests.apiserver.client import MemoryClient
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import NotFound, ServerError, TooManyRequests, Unreachable
from vnode.kube import leases, urgency, watching
from vnode.kube.pace import MOST
from vnode.kube.pacer import PATIENCE
from vnode.kube.watching import ListOptions
from vnode.telemetry import metrics, target_series

pytestmark = pytest.mark.looptime

SERVICE = 0.1  # seconds for which a request has a seat


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    server = APIServer("c2", clock)
    server.seats.seconds = SERVICE
    for name in ("a", "b"):
        server.add(kinds.NAMESPACES, {"metadata": {"name": name}})

    return server


async def read(client: MemoryClient, namespace: str = "a") -> None:
    with pytest.raises(NotFound):
        await client.get(kinds.PODS, "none", namespace)


async def slowed(server: APIServer, seats: int = 1, retry_after: float = 1.0) -> MemoryClient:
    """Return a client that a server of so many seats has told to slow down just now."""
    client = server.client()
    server.seats.count, server.seats.retry_after = 0, retry_after
    with pytest.raises(TooManyRequests):
        await client.get(kinds.PODS, "none", "a")

    server.seats.count = seats
    return client


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_after_a_refusal_all_wait_as_long_as_the_server_has_asked_for(
    server: APIServer,
) -> None:
    client = await slowed(server, seats=MOST, retry_after=3.0)
    begun = now()
    await asyncio.gather(*(read(client) for _ in range(5)))
    assert now() - begun >= 3.0
    assert server.seats.refused.total() == 1


async def test_requests_to_another_server_do_not_wait(server: APIServer, clock: Clock) -> None:
    await slowed(server, retry_after=10.0)
    begun = now()
    await read(APIServer("c3", clock).client())
    assert now() - begun < 0.1


async def test_few_are_refused_however_many_wait(server: APIServer) -> None:
    server.seats.count = 4
    client = server.client()

    async def insist() -> None:
        while True:
            try:
                await read(client)
            except TooManyRequests:
                await asyncio.sleep(1)
            else:
                return

    begun = now()
    await asyncio.gather(*(insist() for _ in range(800)))
    assert server.seats.refused.total() < 0.15 * 800
    assert now() - begun < 1.6 * 800 / 4 * SERVICE


BEATS: dict[str, Callable[[MemoryClient], Awaitable[object]]] = {
    "lease": lambda client: client.patch(kinds.LEASES, "n", {"spec": {}}, leases.NODE_NAMESPACE),
    "node": lambda client: client.apply(
        kinds.NODES, {"metadata": {"name": "n"}}, subresource="status"
    ),
    "summary": lambda client: client.patch(kinds.CLUSTER_SUMMARIES, "n", {}),
}


@pytest.mark.parametrize("beat", BEATS)
async def test_what_keeps_a_node_ready_waits_for_nothing(server: APIServer, beat: str) -> None:
    client = await slowed(server, seats=MOST, retry_after=10.0)
    waiting = asyncio.create_task(read(client))
    await asyncio.sleep(0.01)
    begun = now()
    with pytest.raises(NotFound):
        await BEATS[beat](client)

    assert now() - begun < 1.0
    await waiting


async def test_a_probe_waits_for_nothing(server: APIServer) -> None:
    client = await slowed(server, seats=MOST, retry_after=10.0)
    begun = now()
    with urgency.vital():
        await read(client)

    assert now() - begun < 1.0


async def test_a_lease_that_is_refused_makes_no_pause_longer(server: APIServer) -> None:
    client = await slowed(server, seats=0, retry_after=2.0)
    begun, limit = now(), client.pacer.pace.limit
    waiting = asyncio.create_task(read(client))
    while now() - begun < 1.9:
        with pytest.raises(TooManyRequests):
            await BEATS["lease"](client)

        await asyncio.sleep(0.1)

    server.seats.count = MOST
    await waiting
    assert now() - begun < 2.5
    assert client.pacer.pace.limit == limit


async def test_namespaces_take_turns(server: APIServer) -> None:
    client = await slowed(server)
    many = [asyncio.create_task(read(client, "a")) for _ in range(40)]
    await asyncio.sleep(0.5)
    await read(client, "b")
    assert sum(task.done() for task in many) <= 8
    await asyncio.gather(*many)


async def test_what_somebody_waits_for_goes_before_the_rest(server: APIServer) -> None:
    client = await slowed(server)
    many = [asyncio.create_task(read(client)) for _ in range(40)]
    await asyncio.sleep(0.5)
    with urgency.awaited():
        await read(client)

    assert sum(task.done() for task in many) == 0
    await asyncio.gather(*many)


async def test_the_background_has_its_share_beside_what_somebody_waits_for(
    server: APIServer,
) -> None:
    client = await slowed(server)
    with urgency.awaited():
        many = [asyncio.create_task(read(client)) for _ in range(40)]

    await read(client)
    assert sum(task.done() for task in many) <= 8
    await asyncio.gather(*many)


async def test_who_is_cancelled_while_waiting_takes_nobodys_turn(server: APIServer) -> None:
    client = await slowed(server)
    tasks = [asyncio.create_task(read(client)) for _ in range(3)]
    await asyncio.sleep(0.5)
    tasks[0].cancel()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await read(client)

    begun = now()
    await asyncio.gather(*tasks[1:])
    assert now() - begun < 0.3 + 2 * SERVICE + 0.1
    assert server.seats.given["pods"] == 2


async def test_who_is_cancelled_at_its_turn_passes_it_on(server: APIServer) -> None:
    client = await slowed(server)
    first = asyncio.create_task(read(client))
    second = asyncio.create_task(read(client))
    await asyncio.sleep(0.5)
    client.pacer.pace.until = -math.inf
    client.pacer._give()  # the first one's turn, of which it has not heard
    first.cancel()
    await second
    assert server.seats.given["pods"] == 1


async def test_a_request_whose_turn_does_not_come_fails_in_time_and_was_not_sent(
    server: APIServer,
) -> None:
    client = await slowed(server)
    server.seats.seconds = 25.0
    first = asyncio.create_task(read(client))
    await asyncio.sleep(1.5)
    begun = now()
    with pytest.raises(TooManyRequests, match="c2 has told the agent to slow down"):
        await client.get(kinds.PODS, "none", "a")

    assert now() - begun == pytest.approx(PATIENCE, abs=0.1)
    await first
    assert server.seats.given["pods"] == 1


async def test_a_pause_that_is_too_long_is_told_at_once(server: APIServer) -> None:
    client = await slowed(server, retry_after=60.0)
    begun = now()
    with pytest.raises(TooManyRequests) as raised:
        await client.get(kinds.PODS, "none", "a")

    assert now() - begun < 0.1
    assert raised.value.retry_after == pytest.approx(60.0, abs=0.5)


async def test_what_is_left_of_its_time_is_all_that_a_request_has_after_its_wait(
    server: APIServer,
) -> None:
    client = await slowed(server, retry_after=15.0)
    server.freeze()
    begun = now()
    with pytest.raises(Unreachable, match="c2: timed out"):
        await client.get(kinds.PODS, "none", "a")

    assert now() - begun == pytest.approx(30.0, abs=0.1)


async def test_behind_a_server_that_hangs_requests_fail_as_unanswered(server: APIServer) -> None:
    client = server.client()
    server.freeze()
    hung = [asyncio.create_task(client.get(kinds.PODS, "none", "a")) for _ in range(MOST)]
    await asyncio.sleep(0.1)
    with pytest.raises(Unreachable, match="c2: timed out"):
        await client.get(kinds.PODS, "none", "a")

    found = await asyncio.gather(*hung, return_exceptions=True)
    assert {type(each) for each in found} == {Unreachable}
    server.thaw()
    await read(client)


async def test_a_budgets_no_to_an_eviction_slows_nobody(server: APIServer) -> None:
    client = server.client()
    server.add(kinds.PODS, {"metadata": {"name": "x", "namespace": "a"}})
    server.fail(TooManyRequests(429, "TooManyRequests", "disruption budget"), verb="create")
    with pytest.raises(TooManyRequests):
        await client.create(
            kinds.PODS, {"metadata": {"name": "x"}}, "a", name="x", subresource="eviction"
        )

    assert client.pacer.pace.is_free
    assert client.pacer.start() is not None


async def test_a_watch_that_is_refused_has_requests_wait_and_watches_wait_for_them(
    server: APIServer,
) -> None:
    client = server.client()
    server.fail(TooManyRequests(429, "TooManyRequests", "slow down"), verb="watch")
    selection = ListOptions(kinds.PODS)
    with pytest.raises(TooManyRequests):
        await anext(watching.stream(client, selection, ""))

    begun = now()
    stream = watching.stream(client, selection, "")
    await anext(stream)
    assert now() - begun >= 1.0
    assert client.pacer.pace.is_free
    await stream.aclose()
    await read(client)


async def test_a_watch_that_is_open_is_none_of_the_requests_under_way(server: APIServer) -> None:
    client = await slowed(server)
    stream = watching.stream(client, ListOptions(kinds.PODS), "")
    await anext(stream)
    await read(client)
    await stream.aclose()


async def test_a_failing_server_is_not_taken_for_one_that_grants_more(server: APIServer) -> None:
    client = await slowed(server, seats=MOST)
    client.pacer.pace._again = 0.0
    server.fail(ServerError(500, "", "etcd is away"), times=None)
    for _ in range(10):
        with pytest.raises(ServerError):
            await client.get(kinds.PODS, "none", "a")

    assert client.pacer.pace.limit == 1


async def test_metrics_show_the_limit_and_what_was_waited(server: APIServer) -> None:
    metrics.PACE_LIMIT.clear()
    metrics.PACE_WAIT_SECONDS.clear()
    client = await slowed(server)
    await read(client)
    assert metrics.values_by(metrics.PACE_LIMIT, "api_server") == {"c2": 1.0}
    (waited,) = metrics.PACE_WAIT_SECONDS.collect()
    found = {sample.name.rpartition("_")[2]: sample.value for sample in waited.samples}
    assert found["count"] == 1
    assert found["sum"] == pytest.approx(1.0, abs=0.05)
    target_series.forget("c2")
    target_series.expect("c2")  # for other tests
    assert metrics.values_by(metrics.PACE_LIMIT, "api_server") == {}
