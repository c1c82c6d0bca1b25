"""What a watcher that keeps nothing passes on after a server has failed, and what is lost then."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.errors import Denied, Gone, Invalid, ServerError, TooManyRequests
from vnode.kube.retry_watcher import RetryWatcher
from vnode.kube.watching import ListOptions

pytestmark = pytest.mark.looptime

FAULTS = [
    ServerError(500, "InternalError", "etcdserver: request timed out"),
    ServerError(504, "Timeout", "too slow"),
    TooManyRequests(429, "TooManyRequests", "busy"),
    Denied(403, "Forbidden", "not yet"),
]


def event(name):
    return {"metadata": {"name": name, "namespace": "default"}}


async def passed_on(clock, error):
    """Return the names that are passed on of Events before, during and after failures."""
    server, names = APIServer("server", clock), []
    watcher = RetryWatcher(
        server.client(),
        ListOptions(kinds.EVENTS),
        lambda found: names.append(objects.name(found)),
        clock,
    )
    async with background.running(watcher.run()):
        await asyncio.sleep(1)
        server.add(kinds.EVENTS, event("first"))
        await asyncio.sleep(1)
        fault = server.fail(error, verb="watch", times=None)
        server.cut_watches()
        await asyncio.sleep(5)
        server.add(kinds.EVENTS, event("meanwhile"))
        fault.clear()
        await asyncio.sleep(60)
        server.add(kinds.EVENTS, event("last"))
        await asyncio.sleep(1)

    return names


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: str(error.status))
async def test_an_error_that_passes_loses_nothing(clock, error):
    assert await passed_on(clock, error) == ["first", "meanwhile", "last"]


@pytest.mark.parametrize(
    "error",
    [Gone(410, "Expired", "too old"), Invalid(400, "BadRequest", "no such version")],
    ids=lambda error: str(error.status),
)
async def test_after_a_version_that_is_no_good_it_goes_on_from_the_present(clock, error):
    assert await passed_on(clock, error) == ["first", "last"]
