"""Issued tokens are renewed before they end, at a rate that spares the target."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.issuing.issuing_environment import IssuingEnvironment
from tests.unsigned_tokens import jwt
from vnode.api.clock import Clock
from vnode.api.errors import Denied, ServerError
from vnode.kube import account_tokens
from vnode.kube.account_tokens import GrantedToken

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("chance", [0.0, 1.0])
async def test_it_is_renewed_in_time_again_and_again(clock: Clock, chance: float) -> None:
    env, begun = IssuingEnvironment(clock, chance=chance), clock.now().timestamp()
    env.request()
    async with env.running():
        first = env.token()
        await asyncio.sleep(440)
        assert env.token() == first
        await asyncio.sleep(45)
        assert 448 <= env.issued_at() - begun <= 484
        await asyncio.sleep(7200)

    assert env.asked() == pytest.approx(7687 / (480 if chance == 0 else 450), abs=1.5)
    assert clock.now().timestamp() - env.issued_at() < 485
    assert env.conditions()["Expired"] == ("False", "TokenValid")


async def test_nothing_is_asked_of_the_target_while_nothing_is_due(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        before = len(env.target.received()), len(env.source.received("patch"))
        await asyncio.sleep(400)
        assert (len(env.target.received()), len(env.source.received("patch"))) == before


async def test_no_gap_if_the_target_is_away_when_the_token_is_due(clock: Clock) -> None:
    env = IssuingEnvironment(clock, chance=0.0)
    env.request()
    async with env.running():
        await asyncio.sleep(470)
        first = env.token()
        fault = env.target.fail(ServerError(503, "ServiceUnavailable", "away"), times=None)
        await asyncio.sleep(90)
        assert env.token() == first
        assert env.conditions()["ServiceAccountFoundOrCreated"] == ("False", "TargetFailed")
        fault.clear()
        await asyncio.sleep(35)
        assert env.token() != first
        assert env.conditions()["ServiceAccountFoundOrCreated"][0] == "True"
        assert env.conditions()["Expired"] == ("False", "TokenValid")


async def test_a_token_that_ended_says_so(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        env.target.fail(Denied(403, "Forbidden", "no token for you"), verb="create", times=None)
        await asyncio.sleep(605)
        conditions = env.conditions()

    assert conditions["Expired"] == ("True", "TokenEnded")
    assert conditions["ServiceAccountTokenRetrieved"] == ("False", "Forbidden")
    assert "no token for you" in env.message("ServiceAccountTokenRetrieved")


async def test_a_cluster_that_grants_moments_is_asked_once_a_minute(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def brief(*_args: object) -> GrantedToken:
        nonlocal asked
        asked, now = asked + 1, int(clock.now().timestamp())
        sub = "system:serviceaccount:queues:queue"
        return GrantedToken(jwt(sub=sub, iat=now, exp=now + 2, jti=asked), None)

    monkeypatch.setattr(account_tokens, "request", brief)
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        await asyncio.sleep(600)

    assert asked <= 11
