"""The address of a target changes: the link goes on if the same cluster answers at the new one."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.targets.served_clusters import (
    SECONDS,
    ServedCluster,
    chaperon,
    connected,
    until_health,
)
from vnode.api import kinds
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.runtime.link import Link
from vnode.targets import moving
from vnode.targets.cluster_identity import Expected

NOWHERE = Endpoint("http://127.0.0.1:1", None, Constant(None))


async def until_moved(link: Link, endpoint: Endpoint) -> None:
    moved = asyncio.Event()
    link.on_health(lambda: moved.set() if link.client.endpoint.url == endpoint.url else None)
    await moved.wait()


async def test_the_link_goes_on_at_another_address_of_the_cluster() -> None:
    cluster = ServedCluster("a", chaperon("web"))
    healths = list[str]()
    async with (
        cluster.endpoint() as other,
        connected(cluster, Expected("a")) as (connection, added, running),
    ):
        link = await added.get()
        await until_health(link, "Connected")
        link.on_health(lambda: healths.append(link.health.reason))
        connection.move_to(other)
        await until_moved(link, other)
        assert len(link.chaperons.store) == 1
        assert cluster.server.count("list", kinds.POD_CHAPERONS) == 1
        assert added.empty()
        assert not running.done()

    assert set(healths) <= {"Connected"}


async def test_another_cluster_at_the_new_address_is_refused_by_a_new_link() -> None:
    cluster, another = ServedCluster("a", chaperon("web")), ServedCluster("b")
    async with (
        another.endpoint() as other,
        connected(cluster, Expected("a")) as (connection, added, _running),
    ):
        await until_health(await added.get(), "Connected")
        connection.move_to(other)
        await until_health(await added.get(), "OtherCluster")
        assert another.followed == [("POST", "podchaperons")]  # the dry run of a probe


async def test_a_confirmed_cluster_at_the_new_address_gets_a_new_link() -> None:
    cluster, another = ServedCluster("a", chaperon("web")), ServedCluster("b", chaperon("other"))
    async with (
        another.endpoint() as other,
        connected(cluster, Expected("a", "b")) as (connection, added, _running),
    ):
        await until_health(await added.get(), "Connected")
        connection.move_to(other)
        link = await added.get()
        await until_health(link, "Connected")
        assert link.recognized_uid == "b"


async def test_where_nobody_answers_a_new_link_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "_LIMIT", 0.1)
    monkeypatch.setattr(moving, "_PAUSE", 0.01)
    async with connected(ServedCluster("a"), Expected("a")) as (connection, added, _running):
        await until_health(await added.get(), "Connected")
        connection.move_to(NOWHERE)
        await until_health(await added.get(), "Unreachable")


async def test_an_address_that_is_put_right_at_once_costs_no_link() -> None:
    cluster = ServedCluster("a", chaperon("web"))
    async with (
        cluster.endpoint() as other,
        connected(cluster, Expected("a")) as (connection, added, _running),
    ):
        link = await added.get()
        await until_health(link, "Connected")
        connection.move_to(NOWHERE)
        await asyncio.sleep(0)  # it is being tried
        connection.move_to(other)
        await until_moved(link, other)
        assert added.empty()


async def test_a_cluster_that_does_not_say_which_one_it_is_gets_a_new_link() -> None:
    cluster = ServedCluster("")
    async with (
        cluster.endpoint() as other,
        connected(cluster, Expected()) as (connection, added, _running),
    ):
        await until_health(await added.get(), "Connected")
        connection.move_to(other)
        link = await added.get()
        assert link.client.endpoint.url == other.url
        await until_health(link, "Connected")


async def test_a_token_that_comes_while_the_link_moves_is_used_at_the_new_address() -> None:
    shown = asyncio.Queue[str]()
    cluster = ServedCluster("a")
    async with (
        cluster.endpoint({"secret": "older", "newer": "newer"}) as other,
        connected(cluster, Expected("a")) as (connection, added, _running),
        asyncio.timeout(SECONDS),
    ):
        await until_health(await added.get(), "Connected")
        cluster.on_request = shown.put_nowait
        connection.move_to(other)
        while await shown.get() != "older":
            pass

        connection.take_over(Endpoint(other.url, None, Constant("Bearer newer")))
        while await shown.get() != "newer":
            pass


async def test_what_is_not_connected_is_not_moved() -> None:
    async with connected(ServedCluster("b"), Expected("a")) as (connection, added, _running):
        await until_health(await added.get(), "OtherCluster")
        assert not connection.move_to(NOWHERE)
        assert connection.endpoint is not NOWHERE
