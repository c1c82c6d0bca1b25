"""Who may look at an agent's dashboard, by which requests, and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from tests.apiserver.server import APIServer
from tests.unit.dashboard.test_site import FakeLiveModel
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import Unreachable
from vnode.dashboard.auth import PATH, AuthMiddleware
from vnode.dashboard.site import Site
from vnode.kubelet.auth.authentication import UserInfo

ALICE = {"Authorization": "Bearer alices"}
REFUSAL = "show a client certificate of this cluster, or a bearer token"
PATHS = [
    *(PATH, f"{PATH}/", f"{PATH}/pods", f"{PATH}/pods/default/web", f"{PATH}/events"),
    *(f"{PATH}/style.css", f"{PATH}/../healthz", f"{PATH}/%2e%2e/%2e%2e/etc/passwd"),
    *("/", "/healthz", "//dashboard/", "/dashboard%2Fpods", "/DASHBOARD/", "/other"),
]


@pytest.fixture
async def server() -> APIServer:
    """Return the API server, which knows a token of alice and one of bob."""
    server = APIServer("local", SystemClock())
    server.know("alices", "alice")
    server.know("bobs", "bob")
    return server


@pytest.fixture
async def client(server: APIServer) -> AsyncIterator[TestClient[Any, Any]]:
    auth = AuthMiddleware(server.client(), SystemClock())
    live_model: Any = FakeLiveModel()
    app = Site(live_model, PATH).app([auth.middleware])
    async with TestClient(TestServer(app, skip_url_asserts=True)) as client:
        yield client


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE", "CONNECT", "PROPFIND"]
)
async def test_a_stranger_learns_nothing_by_any_method_or_path(
    client: TestClient[Any, Any], server: APIServer, method: str
) -> None:
    for path in PATHS:
        async with client.request(method, URL(path, encoded=True), allow_redirects=False) as answer:
            assert answer.status == 401, path
            assert (await answer.text()).strip() in ("", REFUSAL)

    assert not server.received("create", kinds.SUBJECT_ACCESS_REVIEWS)


@pytest.mark.parametrize(
    "credentials",
    ["Basic YWxpY2U6", "Bearer", "Bearer ", "bearer unknown", "Bearer \N{EURO SIGN}", "alices", ""],
)
async def test_what_is_no_known_token_is_nobody(
    client: TestClient[Any, Any], credentials: str
) -> None:
    async with client.get(f"{PATH}/", headers={"Authorization": credentials}) as answer:
        assert answer.status == 401


async def test_the_right_is_asked_for_by_the_path_and_one_callers_answer_is_no_other_ones(
    client: TestClient[Any, Any], server: APIServer
) -> None:
    async with client.get(f"{PATH}/", headers=ALICE) as answer:
        assert answer.status == 200

    server.refuse("get", PATH)
    async with client.get(f"{PATH}/pods", headers=ALICE) as known:
        assert known.status == 200  # the answer is kept for minutes, as a kubelet keeps it

    async with client.get(f"{PATH}/", headers={"Authorization": "Bearer bobs"}) as other:
        assert other.status == 403
        assert "bob may not get /dashboard" in await other.text()

    asked = [each.body["spec"] for each in server.received("create", kinds.SUBJECT_ACCESS_REVIEWS)]
    assert [spec["user"] for spec in asked] == ["alice", "bob"]
    assert all(each["nonResourceAttributes"] == {"path": PATH, "verb": "get"} for each in asked)


@pytest.mark.parametrize(
    "other",
    [
        UserInfo("alice", ("b",), "1", (("scopes", ("x",)),)),
        UserInfo("alice", ("a",), "2", (("scopes", ("x",)),)),
        UserInfo("alice", ("a",), "1", (("scopes", ("x", "y")),)),
        UserInfo("alice", ("a",), "1"),
    ],
)
async def test_an_answer_counts_for_the_same_name_groups_uid_and_extra_fields_only(
    server: APIServer, other: UserInfo
) -> None:
    auth = AuthMiddleware(server.client(), SystemClock())
    assert await auth._may(UserInfo("alice", ("a",), "1", (("scopes", ("x",)),)))

    server.refuse("get", PATH)
    assert not await auth._may(other)


async def test_no_page_is_shown_while_rights_cannot_be_asked_about(
    client: TestClient[Any, Any], server: APIServer
) -> None:
    server.fail(Unreachable("no answer"), kind=kinds.SUBJECT_ACCESS_REVIEWS)
    async with client.get(f"{PATH}/", headers=ALICE) as answer:
        assert answer.status == 503
