"""`vnode get policies` and `vnode get overrides`: which policies there are, and how they stand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli.completion import candidates
from vnode.cli.get import policy_views
from vnode.cli.get.listing import Listing, ListRequest
from vnode.cli.get.views import View

pytestmark = pytest.mark.looptime

MIRRORED = {"ready": "True", "accepted": "True", "applicable": "True"}
RULES = [{"env": [{"set": [{"name": "A", "value": "1"}]}]}]


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    server = APIServer("c1", clock)
    add(server, kinds.OVERRIDE_POLICIES, "mirror", "team-a", **MIRRORED)
    why = MIRRORED | {"ready": "False", "applicable": "False", "message": "no such path"}
    add(server, kinds.CLUSTER_OVERRIDE_POLICIES, "all", "", app="", **why)
    return server


def add(server: APIServer, kind: Kind, name: str, namespace: str, **fields: str) -> None:
    """Store a policy for the pods of one app, or for all."""
    app, message = fields.pop("app", "web"), fields.pop("message", "fine")
    conditions = [
        {"type": type_.title(), "status": value, "message": message}
        for type_, value in fields.items()
    ]
    selector = {"matchLabels": {"app": app}} if app else {}
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec: Object = {"selector": selector, "rules": RULES}
    server.add(kind, {"metadata": metadata, "spec": spec, "status": {"conditions": conditions}})


def add_pod(server: APIServer, name: str, namespace: str = "team-a", **fields: Any) -> None:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": fields.pop("app", "web")}}
    spec = {"schedulerName": fields.pop("scheduler", keys.PROXY_SCHEDULER), "containers": []}
    server.add(kinds.PODS, {"metadata": metadata, "spec": spec, "status": fields})


async def listed(
    server: APIServer,
    view: View = policy_views.OVERRIDES,
    namespace: str | None = None,
    how: str = "wide",
) -> list[list[str]]:
    lines: list[str] = []
    await Listing(server.client(), ListRequest(view, (), namespace, how), lines.append).once()
    return [line.split() for line in lines]


async def test_override_policies_are_listed_with_their_conditions_and_pods(
    server: APIServer,
) -> None:
    add_pod(server, "web-0")
    add_pod(server, "web-1", "team-b")
    add_pod(server, "other", app="other")
    add_pod(server, "done", phase="Succeeded")
    add_pod(server, "here", scheduler="default-scheduler")
    heading, *rows = await listed(server)
    assert heading == (
        [
            "NAMESPACE",
            "NAME",
            "RULES",
            "READY",
            "ACCEPTED",
            "APPLICABLE",
            "PODS",
            "PRIORITY",
            "AGE",
            "MESSAGE",
        ]
    )
    mirror, everywhere = rows
    assert mirror[:8] == ["team-a", "mirror", "1", "True", "True", "True", "1", "0"]
    assert mirror[9:] == ["<none>"]
    assert everywhere[:8] == ["<none>", "all", "1", "False", "True", "False", "3", "0"]
    assert everywhere[9:] == ["no", "such", "path"]


async def test_of_one_namespace_its_own_and_those_of_the_cluster_are_listed(
    server: APIServer,
) -> None:
    add(server, kinds.OVERRIDE_POLICIES, "theirs", "team-b")
    rows = await listed(server, namespace="team-a", how="table")
    assert [row[1] for row in rows] == ["NAME", "mirror", "all"]


async def test_without_the_right_to_list_pods_they_are_not_counted(server: APIServer) -> None:
    server.fail(Denied(403, "", "no pods"), kind=kinds.PODS)
    assert [row[6] for row in await listed(server)] == ["PODS", "-", "-"]


async def test_names_are_what_kubectl_takes_and_pods_are_not_read(server: APIServer) -> None:
    assert await listed(server, how="name") == [
        ["overridepolicy.vnode.dev/mirror"],
        ["clusteroverridepolicy.vnode.dev/all"],
    ]
    assert kinds.PODS not in [request.kind for request in server.requests]


async def test_placement_policies_read_no_pods(server: APIServer) -> None:
    await listed(server, policy_views.POLICIES)
    assert kinds.PODS not in [request.kind for request in server.requests]


def test_a_shell_completes_the_resource() -> None:
    assert [item.value for item in candidates(["get", "o"])] == ["overrides"]


async def test_rebalances_say_whose_pods_they_are_for_and_how_far_they_are(
    server: APIServer,
) -> None:
    named = [{"kind": "Deployment", "name": f"w{number}"} for number in range(5)]
    moving = {"phase": "Progressing", "workloads": 5, "moved": 2, "remaining": 0, "message": "on"}
    for name, spec, status in (
        ("all", {}, {}),
        ("one", {"policy": "web"}, moving),
        ("some", {"workloads": named}, {**moving, "phase": "Failed"}),
    ):
        metadata = {"name": name, "namespace": "team-a"}
        server.add(kinds.REBALANCES, {"metadata": metadata, "spec": spec, "status": status})

    _, every, one, some = await listed(server, policy_views.REBALANCES)
    assert every[:6] == ["team-a", "all", *["<none>"] * 4]
    assert every[7:] == ["all", "<none>"]
    assert one[:6] == ["team-a", "one", "Progressing", "5", "2", "0"]
    assert one[7:] == ["placementpolicy/web", "on"]
    shown = "deployment/w0, deployment/w1, deployment/w2 and 2 more on"
    assert some[2] == "Failed"
    assert " ".join(some[7:]) == shown
    [heading, *_] = await listed(server, policy_views.REBALANCES, namespace="team-a", how="table")
    assert heading == ["NAME", "STATUS", "WORKLOADS", "MOVED", "REMAINING", "AGE"]
