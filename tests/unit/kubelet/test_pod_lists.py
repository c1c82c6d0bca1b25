"""Which paths a virtual node answers with a final slash, and which pods it lists as running."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests import virtual_nodes
from vnode.api.objects import Object

RUNNING: Object = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
TERMINATED: Object = {"terminated": {"exitCode": 0}}


async def no_target(_request: web.Request) -> web.Response:
    """Answer for the target."""
    return web.json_response({"items": []})


def pod(name: str, states: dict[str, Object], phase: str = "Running", **metadata: Any) -> Object:
    """Return a pod whose containers have these states."""
    statuses = [
        {"name": container, "image": f"{container}:1", "state": state}
        for container, state in states.items()
    ]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": {"nodeName": "v", "containers": [{"name": name} for name in states]},
        "status": {"phase": phase, "containerStatuses": statuses},
    }


async def ask(method: str, path: str, *pods: Object) -> tuple[int, Any]:
    """Return the status, and the JSON of a list."""
    async with (
        virtual_nodes.node(no_target, pods=pods) as server,
        aiohttp.ClientSession() as session,
        session.request(method, server.make_url(path)) as answer,
    ):
        is_json = answer.content_type == "application/json"
        return answer.status, await answer.json() if is_json else await answer.text()


async def listed(path: str, *pods: Object) -> dict[str, list[str]]:
    """Return the containers of each listed pod."""
    _status, body = await ask("GET", path, *pods)
    return {
        item["metadata"]["name"]: [c["name"] for c in item["spec"]["containers"]]
        for item in body["items"]
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/pods"),
        ("GET", "/runningpods"),
        ("GET", "/stats/summary"),
        ("GET", "/containerLogs/default/web/main"),
        ("GET", "/exec/default/web/main"),
        ("GET", "/exec/default/web/u/main"),
        ("POST", "/attach/default/web/main"),
        ("POST", "/portForward/default/web"),
        ("POST", "/checkpoint/default/web/main"),
    ],
)
async def test_a_final_slash_makes_no_difference_where_it_makes_none_to_a_kubelet(
    method: str, path: str
) -> None:
    status, body = await ask(method, path)

    assert status not in (404, 405)
    assert await ask(method, path + "/") == (status, body)


@pytest.mark.parametrize("path", ["/healthz", "/configz", "/metrics", "/metrics/slis"])
async def test_a_final_slash_is_not_found_where_a_kubelet_has_none(path: str) -> None:
    assert (await ask("GET", path))[0] == 200
    assert (await ask("GET", path + "/"))[0] == 404


async def test_only_containers_that_run_are_listed_as_running() -> None:
    assert await listed(
        "/runningpods",
        pod("web", {"main": RUNNING, "once": TERMINATED}),
        pod("between", {"main": TERMINATED}),
        pod("waiting", {"main": {"waiting": {"reason": "ContainerCreating"}}}, "Pending"),
        pod("lost", {"main": RUNNING}, "Failed"),
    ) == {"web": ["main"]}


async def test_an_init_container_that_runs_is_listed_though_its_pod_is_pending() -> None:
    starting = pod("starting", {"main": {"waiting": {}}}, "Pending")
    starting["status"]["initContainerStatuses"] = [{"name": "first", "state": RUNNING}]

    assert await listed("/runningpods", starting) == {"starting": ["first"]}


async def test_a_terminating_pod_is_running_until_its_last_container_has_ended() -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    ending, ended = (
        pod(name, {"main": state}, **deleted)
        for name, state in (("ending", RUNNING), ("ended", TERMINATED))
    )

    assert await listed("/runningpods", ending, ended) == {"ending": ["main"]}
    assert (await listed("/pods", ending, ended)).keys() == {"ending", "ended"}


async def test_a_running_container_is_listed_with_the_image_that_the_target_reports() -> None:
    _status, body = await ask("GET", "/runningpods", pod("web", {"main": RUNNING}))
    assert body["items"][0]["spec"]["containers"] == [
        {"name": "main", "image": "main:1", "resources": {}}
    ]
