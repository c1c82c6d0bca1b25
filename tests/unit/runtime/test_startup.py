from __future__ import annotations

import asyncio

import pytest

from vnode.api.errors import (
    ConfigError,
    Conflict,
    Denied,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from vnode.runtime import startup

pytestmark = pytest.mark.looptime

AWAY = Unreachable("local: connection refused")
REFUSED = Denied(403, "Forbidden", "no")


class Server:
    """Raises these, one for each question, then answers."""

    def __init__(self, *errors):
        self.errors, self.asked = list(errors), 0

    async def ask(self):
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)

        return "it"


async def test_an_api_server_is_waited_for_until_it_answers(clock):
    passing = (ServerError(500, "", ""), Conflict(409, "", ""), TooManyRequests(429, "", ""))
    server = Server(*[AWAY] * 20, *passing, REFUSED)
    began = clock.monotonic()
    with pytest.raises(Denied):  # it has said so long after the start
        await startup.wait_for_answer(server.ask, clock)

    assert clock.monotonic() - began > 60
    assert await startup.wait_for_answer(server.ask, clock) == "it"


async def test_one_that_is_back_is_noticed_within_seconds(clock):
    server = Server(*[AWAY] * 100)
    waiting = asyncio.create_task(startup.wait_for_answer(server.ask, clock))
    await asyncio.sleep(60)
    server.errors.clear()
    began = clock.monotonic()
    assert await waiting == "it"
    assert clock.monotonic() - began <= 4


async def test_a_refusal_right_after_the_start_may_pass(clock):
    assert await startup.wait_for_answer(Server(REFUSED, REFUSED).ask, clock) == "it"


@pytest.mark.parametrize("error", [ConfigError("no CRDs"), NotFound(404, "NotFound", "no")])
async def test_what_time_does_not_mend_is_raised_at_once(clock, error):
    server = Server(error)
    with pytest.raises(type(error)):
        await startup.wait_for_answer(server.ask, clock)

    assert server.asked == 1


async def test_the_same_trouble_is_said_once(clock, caplog):
    await startup.wait_for_answer(Server(*[AWAY] * 9).ask, clock)
    assert [record.message for record in caplog.records] == [f"waiting for the API server: {AWAY}"]
