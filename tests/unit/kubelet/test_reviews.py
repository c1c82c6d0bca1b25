"""How often the API server is asked about the same token, or the same right."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.kubelet.auth.authentication import Authenticator, UserInfo
from vnode.kubelet.auth.authorization import Authorizer
from vnode.kubelet.refusal import Refused

pytestmark = pytest.mark.looptime

ALICE = UserInfo("alice")


@pytest.fixture
async def server(clock):
    """Return the API server, which knows the token `x`."""
    server = APIServer("local", clock)
    server.know("x", "alice")
    return server


@pytest.fixture
def authenticator(server, clock):
    return Authenticator(server.client(), clock)


@pytest.fixture
def authorizer(server, clock):
    return Authorizer(server.client(), clock)


def tokens(server):
    """List the tokens of which the API server was asked."""
    return [each.body["spec"]["token"] for each in server.received("create", kinds.TOKEN_REVIEWS)]


def rights(server):
    """List the rights of which the API server was asked."""
    reviews = server.received("create", kinds.SUBJECT_ACCESS_REVIEWS)
    return [each.body["spec"]["resourceAttributes"] for each in reviews]


def refuse(server, verb, *subresources):
    for subresource in subresources:
        server.refuse(verb, f"nodes/{subresource}")


@pytest.mark.parametrize("good", [True, False])
async def test_a_token_is_reviewed_every_two_minutes(server, authenticator, good):
    async def is_known():
        return await authenticator.authenticate(None, "Bearer x") is not None

    def judge(good):
        server.know("x", "alice") if good else server.forget("x")

    judge(good)
    assert [await is_known(), await is_known()] == [good, good]
    await asyncio.sleep(119.9)
    judge(not good)
    assert await is_known() is good
    assert tokens(server) == ["x"]

    await asyncio.sleep(0.2)
    assert await is_known() is not good
    assert tokens(server) == ["x", "x"]


async def test_each_token_is_reviewed_for_itself(server, authenticator):
    for token in ("x", "y", "x"):
        await authenticator.authenticate(None, f"Bearer {token}")

    assert tokens(server) == ["x", "y"]


async def test_a_token_that_could_not_be_reviewed_is_refused_and_asked_about_again(
    server, authenticator
):
    server.stop()
    assert await authenticator.authenticate(None, "Bearer x") is None

    server.start()
    assert await authenticator.authenticate(None, "Bearer x") is not None


async def test_a_right_is_asked_about_every_five_minutes(server, authorizer):
    for seconds, asked in ((0, 1), (299.9, 1), (0.2, 2)):
        await asyncio.sleep(seconds)
        await authorizer.authorize(ALICE, "n", "GET", "/containerLogs/a/b/c")
        assert len(rights(server)) == asked


async def test_a_right_that_was_denied_is_asked_about_every_thirty_seconds(server, authorizer):
    refuse(server, "get", "proxy")
    for seconds, asked in ((0, 1), (29.9, 1), (0.2, 2)):
        await asyncio.sleep(seconds)
        with pytest.raises(Refused) as refused:
            await authorizer.authorize(ALICE, "n", "GET", "/containerLogs/a/b/c")

        assert refused.value.status == 403
        assert len(rights(server)) == asked


async def test_the_finest_right_is_asked_about_first(server, authorizer):
    refuse(server, "get", "pods", "proxy")
    with pytest.raises(Refused):
        await authorizer.authorize(ALICE, "n", "GET", "/pods")

    assert [one["subresource"] for one in rights(server)] == ["pods", "proxy"]
    assert {(one["resource"], one["name"], one["verb"]) for one in rights(server)} == {
        ("nodes", "n", "get")
    }


async def test_a_right_to_read_opens_no_exec_by_websocket(server, authorizer):
    refuse(server, "create", "proxy")
    with pytest.raises(Refused, match="verb=create"):
        await authorizer.authorize(ALICE, "n", "GET", "/exec/a/b/c")

    [asked] = rights(server)
    assert (asked["verb"], asked["subresource"]) == ("create", "proxy")


async def test_a_right_that_cannot_be_found_out_is_an_error_and_not_kept(server, authorizer):
    server.stop()
    with pytest.raises(Refused) as refused:
        await authorizer.authorize(ALICE, "n", "GET", "/configz")

    assert refused.value.status == 500
    server.start()
    await authorizer.authorize(ALICE, "n", "GET", "/configz")
