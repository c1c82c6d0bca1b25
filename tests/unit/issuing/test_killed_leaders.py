"""A leader that is killed at any request about an issued token changes no end of it."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.apiserver.requests import APIRequest
from tests.unit.issuing.issuing_environment import IssuingEnvironment
from vnode.api.clock import Clock, happens_within
from vnode.issuing.steps import IssueStep

pytestmark = pytest.mark.looptime

READS = ("get", "list", "watch")
DUE = 480  # seconds after which a token of 600 is renewed
MADE = {
    "ServiceAccount queues/queue",
    "Role work/jobs",
    "RoleBinding work/vnode-issued-jobs-46aadc163c5b64eb",
    "ClusterRole all-jobs",
    "ClusterRoleBinding vnode-issued-all-jobs-387f18bfd80e639d",
}


async def kill_at(
    env: IssuingEnvironment, number: int, *, carried_out: bool, seconds: float
) -> bool:
    """Have a leader work until its write of that number, whose answer it does not get.

    Returns False if it has sent fewer within the time.
    """
    numbers, reached = itertools.count(1), asyncio.Event()

    def is_due(request: APIRequest) -> bool:
        if request.verb in READS or next(numbers) != number:
            return False

        reached.set()
        return True

    never = float("inf")
    faults = [
        server.fail(None, when=is_due, after=carried_out, delay=never)
        for server in (env.source, env.target)
    ]
    env.begin_term()
    async with env.running():
        await happens_within(reached, seconds)

    for fault in faults:
        fault.clear()

    return reached.is_set()


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_token_is_issued_all_the_same(clock: Clock, carried_out: bool) -> None:
    for number in itertools.count(1):
        env = IssuingEnvironment(clock)
        env.request()
        is_killed = await kill_at(env, number, carried_out=carried_out, seconds=5)
        env.begin_term()
        async with env.running():
            conditions = env.conditions()

        assert [conditions[step.value][0] for step in IssueStep] == ["True"] * len(IssueStep)
        assert env.made() == MADE
        assert env.token()
        if not is_killed:
            break

    assert number > len(MADE)


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_token_is_renewed_all_the_same(clock: Clock, carried_out: bool) -> None:
    for number in itertools.count(1):
        env = IssuingEnvironment(clock, chance=0.0)
        env.request()
        async with env.running():
            first = env.token()
            await asyncio.sleep(DUE - 10)

        is_killed = await kill_at(env, number, carried_out=carried_out, seconds=20)
        env.begin_term()
        async with env.running():
            await asyncio.sleep(10)  # it may have been killed before the token was due
            assert env.token() != first
            assert env.conditions()["Expired"] == ("False", "TokenValid")

        assert env.made() == MADE
        if not is_killed:
            break

    assert number > 2


@pytest.mark.parametrize("carried_out", [False, True])
async def test_nothing_is_left_of_a_request_all_the_same(clock: Clock, carried_out: bool) -> None:
    for number in itertools.count(1):
        env = IssuingEnvironment(clock)
        env.request()
        async with env.running():
            assert env.made() == MADE

        await env.delete()
        is_killed = await kill_at(env, number, carried_out=carried_out, seconds=5)
        env.begin_term()
        async with env.running():
            assert (env.made(), env.secret(), env.find()) == (set(), None, {})

        if not is_killed:
            break

    assert number > len(MADE)
