"""How often the API server is asked about the same token, or the same right."""

from __future__ import annotations

from typing import Any

import pytest

from vnode.api.errors import Unreachable
from vnode.kubelet.auth.authentication import Authenticator, UserInfo
from vnode.kubelet.auth.authorization import Authorizer
from vnode.kubelet.refusal import Refused

ALICE = UserInfo("alice")


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time


class Reviewer:
    """An API server that answers reviews as told, and counts them."""

    name = "local"

    def __init__(self, *, good: bool = True) -> None:
        self.good = good
        self.away = False
        self.asked: list[dict[str, Any]] = []

    async def create(self, _kind: object, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body["spec"])
        if self.away:
            raise Unreachable("local", "away")

        user = {"username": "alice"}
        return {"status": {"authenticated": self.good, "user": user, "allowed": self.good}}


@pytest.mark.parametrize("good", [True, False])
async def test_a_token_is_reviewed_every_two_minutes(good: bool):
    server, clock = Reviewer(good=good), Hands()
    authenticator = Authenticator(server, clock)

    async def known() -> bool:
        return await authenticator.authenticate(None, "Bearer x") is not None

    assert [await known(), await known()] == [good, good]
    clock.time = 119.9
    assert await known() is good
    assert len(server.asked) == 1

    clock.time = 120.1
    server.good = not good
    assert await known() is not good
    assert server.asked == [{"token": "x"}, {"token": "x"}]


async def test_each_token_is_reviewed_for_itself():
    server = Reviewer()
    authenticator = Authenticator(server, Hands())

    for token in ("x", "y", "x"):
        await authenticator.authenticate(None, f"Bearer {token}")

    assert server.asked == [{"token": "x"}, {"token": "y"}]


async def test_a_token_that_could_not_be_reviewed_is_refused_and_asked_about_again():
    server = Reviewer()
    authenticator = Authenticator(server, Hands())
    server.away = True
    assert await authenticator.authenticate(None, "Bearer x") is None

    server.away = False
    assert await authenticator.authenticate(None, "Bearer x") is not None


async def test_a_right_is_asked_about_every_five_minutes():
    server, clock = Reviewer(), Hands()
    authorizer = Authorizer(server, clock)
    for moment, asked in ((0, 1), (299.9, 1), (300.1, 2)):
        clock.time = moment
        await authorizer.authorize(ALICE, "n", "GET", "/containerLogs/a/b/c")
        assert len(server.asked) == asked


async def test_a_right_that_was_denied_is_asked_about_every_thirty_seconds():
    server, clock = Reviewer(good=False), Hands()
    authorizer = Authorizer(server, clock)
    for moment, asked in ((0, 1), (29.9, 1), (30.1, 2)):
        clock.time = moment
        with pytest.raises(Refused) as refused:
            await authorizer.authorize(ALICE, "n", "GET", "/containerLogs/a/b/c")

        assert refused.value.status == 403
        assert len(server.asked) == asked


async def test_the_finest_right_is_asked_about_first():
    server = Reviewer(good=False)
    with pytest.raises(Refused):
        await Authorizer(server, Hands()).authorize(ALICE, "n", "GET", "/pods")

    attributes = [asked["resourceAttributes"] for asked in server.asked]
    assert [one["subresource"] for one in attributes] == ["pods", "proxy"]
    assert {(one["resource"], one["name"], one["verb"]) for one in attributes} == {
        ("nodes", "n", "get")
    }


async def test_a_right_to_read_opens_no_exec_by_websocket():
    server = Reviewer(good=False)
    with pytest.raises(Refused, match="verb=create"):
        await Authorizer(server, Hands()).authorize(ALICE, "n", "GET", "/exec/a/b/c")

    [asked] = server.asked
    assert asked["resourceAttributes"]["verb"] == "create"
    assert asked["resourceAttributes"]["subresource"] == "proxy"


async def test_a_right_that_cannot_be_found_out_is_an_error_and_not_kept():
    server = Reviewer()
    authorizer = Authorizer(server, Hands())
    server.away = True
    with pytest.raises(Refused) as refused:
        await authorizer.authorize(ALICE, "n", "GET", "/configz")

    assert refused.value.status == 500
    server.away = False
    await authorizer.authorize(ALICE, "n", "GET", "/configz")
