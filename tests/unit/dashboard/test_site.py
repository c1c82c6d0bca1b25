"""The pages over HTTP, without clusters: headers of every answer, streams, and what fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from tests.unit.dashboard.test_pages import NOW, made, pod
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError, Unreachable
from vnode.dashboard import page, site
from vnode.dashboard.live_model import Subscriber
from vnode.dashboard.paced_turns import PacedTurns
from vnode.dashboard.site import Site
from vnode.dashboard.view_model import ViewModel
from vnode.insight.facts import Facts

EVENT = b"event: changed\ndata: .\n\n"


class FakeLiveModel:
    """Serves the view model that a test has made."""

    clock = SystemClock()
    cluster = "c1"

    def __init__(self) -> None:
        self.turns = PacedTurns(self.clock)
        self.subscribers: list[Subscriber] = []
        self.error: Exception | None = None

    @contextmanager
    def subscription(self, pod: str = "") -> Iterator[Subscriber]:
        subscriber = Subscriber(pod)
        self.subscribers.append(subscriber)
        yield subscriber
        self.subscribers.remove(subscriber)

    async def view(self) -> ViewModel:
        if self.error is not None:
            raise self.error

        return made([pod("web")])

    async def facts(self, _namespace: str, name: str) -> Facts:
        if name != "web":
            raise ConfigError(f"there is no pod {name!r}")

        return Facts(pod("web"), NOW)


@pytest.fixture
def live_model() -> FakeLiveModel:
    return FakeLiveModel()


@pytest.fixture
async def client(live_model: Any) -> AsyncIterator[TestClient[Any, Any]]:
    async with TestClient(TestServer(Site(live_model, "/base").app())) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/base/", 200, "Overview"),
        ("/base/pods", 200, "web"),
        ("/base/policies", 200, "No placement policies"),
        ("/base/targets/default/c2", 200, "Free nodes"),
        ("/base/targets/nothing", 404, "There is no Target or ClusterTarget nothing"),
        ("/base/targets/%3Cscript%3E/x", 404, "&lt;script&gt;"),
        ("/base/search?q=we", 200, "/base/pods/default/web"),
        ("/base/search?q=%3Cscript%3E", 200, "&lt;script&gt;"),
        ("/base/pods/default/web", 200, "Admission"),
        ("/base/pods/default/nobody", 404, "there is no pod"),
        ("/base/pods/%3Cscript%3E/x", 404, "&lt;script&gt;"),
        ("/base/style.css", 200, "prefers-color-scheme"),
        ("/base/other.css", 404, "Not Found"),
        ("/elsewhere", 404, "Not Found"),
    ],
)
async def test_every_answer_has_the_policy(
    client: TestClient[Any, Any], path: str, status: int, text: str
) -> None:
    async with client.get(path) as answer:
        assert answer.status == status
        assert text in await answer.text()
        assert answer.headers["Content-Security-Policy"] == page.POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


async def test_nothing_is_changed_by_a_request(client: TestClient[Any, Any]) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        async with client.request(method, "/base/") as answer:
            assert answer.status == 405


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("a bug"), 500), (Unreachable("c2: no answer"), 502)]
)
async def test_a_page_that_fails_says_so_and_tells_no_more(
    client: TestClient[Any, Any], live_model: FakeLiveModel, error: Exception, status: int
) -> None:
    live_model.error = error
    async with client.get("/base/") as answer:
        assert answer.status == status
        assert answer.headers["Content-Security-Policy"] == page.POLICY
        assert "a bug" not in await answer.text()


async def test_a_stream_tells_of_changes(
    client: TestClient[Any, Any], live_model: FakeLiveModel
) -> None:
    async with client.get("/base/events?pod=default/web") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert await answer.content.readuntil(b"\n\n") == b"retry: 2000\n\n"
        [subscriber] = live_model.subscribers
        subscriber.notify("default/other")
        assert not subscriber.changed.is_set()
        subscriber.notify("default/web")
        async with asyncio.timeout(5):
            assert await answer.content.readexactly(len(EVENT)) == EVENT


async def test_there_are_only_so_many_streams(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "_MAX_STREAMS", 1)
    async with client.get("/base/events"), client.get("/base/events") as second:
        assert second.status == 503


async def test_a_stream_ends_so_that_who_has_lost_the_right_gets_no_other(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "_MAX_LIFE", 0.0)
    async with client.get("/base/events") as answer, asyncio.timeout(5):
        assert await answer.read() == b"retry: 2000\n\n"


@pytest.mark.parametrize(
    ("of", "changed", "is_notified"),
    [
        ("", "a/b", True),
        ("", "", True),
        ("a/b", "", True),
        ("a/b", "a/b", True),
        ("a/b", "c", False),
    ],
)
def test_a_page_is_notified_of_what_concerns_it(of: str, changed: str, is_notified: bool) -> None:
    async def notify() -> bool:
        subscriber = Subscriber(of)
        subscriber.notify(changed)
        return subscriber.changed.is_set()

    assert asyncio.run(notify()) is is_notified
