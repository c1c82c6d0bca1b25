"""What is done for AuthTokenRequests is counted, and the first end of a token told."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.issuing.issuing_environment import IssuingEnvironment
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime


def counted() -> dict[str, float]:
    return {
        outcome: metrics.REGISTRY.get_sample_value(
            "vnode_issued_tokens_total", {"outcome": outcome}
        )
        or 0.0
        for outcome in ("issued", "renewed", "revoked", "failed")
    }


def first_end() -> float:
    return metrics.REGISTRY.get_sample_value("vnode_issued_token_expiry_timestamp_seconds") or 0.0


async def test_tokens_are_counted_from_their_issue_to_their_revocation(clock: Clock) -> None:
    env, before = IssuingEnvironment(clock), counted()
    env.request()
    env.request(
        "longer",
        expirationSeconds=7200,
        serviceAccountName="own",
        roles=None,
        clusterRoles=None,
    )

    def news() -> dict[str, float]:
        return {
            name: value - before[name] for name, value in counted().items() if value > before[name]
        }

    async with env.running():
        assert news() == {"issued": 2}
        ends = str(objects.status(env.find())["expirationTimestamp"])
        moment = objects.parse_timestamp(ends)
        assert moment is not None
        assert first_end() == pytest.approx(moment.timestamp(), abs=1)
        await asyncio.sleep(500)
        assert news() == {"issued": 2, "renewed": 1}
        assert first_end() > moment.timestamp()
        await env.delete()
        await asyncio.sleep(2)
        assert news() == {"issued": 2, "renewed": 1, "revoked": 1}
        assert first_end() > clock.now().timestamp() + 6000

    assert first_end() == 0


async def test_a_revocation_is_counted_once_however_late_the_end_is_seen(clock: Clock) -> None:
    env, before = IssuingEnvironment(clock), counted()
    env.request()
    async with env.running():
        env.target.fail(None, delay=5, verb="delete", kind=kinds.SERVICE_ACCOUNTS)
        await env.delete()
        await asyncio.sleep(2)  # its Secret is gone, which wakes the request once more
        env.source.silence_watches(kinds.AUTH_TOKEN_REQUESTS)
        await asyncio.sleep(10)
        assert env.find() == {}
        assert counted()["revoked"] - before["revoked"] == 1


async def test_attempts_that_fail_are_counted(clock: Clock) -> None:
    env, before = IssuingEnvironment(clock), counted()
    env.target.fail(Denied(403, "", "no"), kind=kinds.SERVICE_ACCOUNTS)
    env.request()
    async with env.running():
        assert counted()["failed"] - before["failed"] == 1
        assert first_end() == 0
