"""The time of an API server is known from its answers, to the second that they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests import answering
from tests.shifted_clock import ShiftedClock
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.cli.doctor import examining
from vnode.kube.client import Client
from vnode.kube.server_clock import FARTHEST, ClockSkew, ServerClock

_NOON = 1_800_000_000.0


def _date(moment: float) -> str:
    return format_datetime(datetime.fromtimestamp(int(moment), UTC), usegmt=True)


@given(
    st.floats(-5000, 5000),
    st.lists(
        st.tuples(st.floats(0, 3), st.floats(0, 3), st.floats(0, 60)), min_size=1, max_size=20
    ),
)
def test_the_estimate_is_never_further_off_than_an_answer_allows(
    ahead: float, answers: list[tuple[float, float, float]]
) -> None:
    skew, now = ClockSkew(), _NOON
    for there, back, pause in answers:
        skew.observe(_date(now + there + ahead), now, now + there + back)
        assert abs(skew.seconds - ahead) <= 1 + there + back + 1e-3
        now += there + back + pause


def test_clocks_that_agree_to_the_second_are_left_alone() -> None:
    skew = ClockSkew()
    for tenths in range(100):
        now = _NOON + tenths / 10
        skew.observe(_date(now), now, now + 0.01)

    assert skew.seconds == 0


@pytest.mark.parametrize("date", [None, "", "yesterday", "Thu, 99 Foo 2026 00:00:00 GMT"])
def test_an_answer_without_a_date_says_nothing(date: str | None) -> None:
    skew = ClockSkew()
    skew.seconds = 5.0
    skew.observe(date, _NOON, _NOON + 1)
    assert skew.seconds == 5.0


DATES = [
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Mon, 01 Jan 0001 00:00:00 GMT",
    "Mon, 01 Jan 0001 00:00:00 -0000",
]


@pytest.mark.parametrize("date", DATES)
def test_a_server_at_an_end_of_the_calendar_is_ten_years_off_at_most(date: str) -> None:
    skew, clock = ClockSkew(), SystemClock()
    now = clock.now().timestamp()
    skew.observe(date, now - 0.1, now)
    assert abs(skew.seconds) < FARTHEST + 2
    assert abs(ServerClock(clock, skew).now().year - clock.now().year) <= 11


@pytest.mark.parametrize("date", DATES)
async def test_so_it_is_for_doctor(date: str) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.36.0"}, headers={"Date": date})

    async with answering.client(answer, "c2") as client:
        _version, skew = await examining.read_version(client)

    assert skew is None or abs(skew) <= FARTHEST


async def test_a_client_knows_the_time_of_its_server_from_any_answer() -> None:
    async def answer(_request: web.Request) -> web.Response:
        later = datetime.now(UTC) + timedelta(minutes=10)
        headers = {"Date": format_datetime(later, usegmt=True)}
        return web.json_response({"metadata": {}}, headers=headers)

    async with answering.endpoint(answer) as where, Client(where, name="test") as client:
        await client.get(kinds.PODS, "x", "default")
        clock = ServerClock(ShiftedClock(SystemClock(), 0), client.skew)
        ahead = (clock.now() - datetime.now(UTC)).total_seconds()
        assert 590 < ahead < 610
