"""`vnode get targetsets`: what sets have found and made, and what they hold."""

from __future__ import annotations

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli.completion import candidates
from vnode.cli.get import resources, set_cells
from vnode.cli.get.listing import Listing, ListRequest
from vnode.targetsets import reporting

pytestmark = pytest.mark.looptime

ALL: Object = {"profiles": {"selector": {}}}


def condition(type_: str, status: str, reason: str, message: str = "fine") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def entry(name: str, reason: str = "Ready", *, ready: bool = True) -> Object:
    return {"name": name, "profile": f"fleet/{name}", "ready": ready, "reason": reason}


def a_set(*listed: Object, held: str = "") -> Object:
    conditions = [
        condition("Ready", "True", "TargetsReady", "2 of 2 Targets are ready"),
        condition("RemovalHeld", "True" if held else "False", held or "NothingHeld", "annotate it"),
    ]
    ready = sum(each["ready"] for each in listed)
    fields = {"found": len(listed), "ready": ready, "targets": [*listed]}
    return {"spec": ALL, "status": {**fields, "conditions": conditions}}


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    return APIServer("c1", clock)


def add(server: APIServer, kind: Kind, name: str, obj: Object) -> None:
    place = {"namespace": "team-a"} if kind.namespaced else {}
    server.add(kind, {**obj, "metadata": {"name": name, **place}})


async def listed(server: APIServer, how: str, resource: str = "targetsets") -> list[str]:
    lines: list[str] = []
    view = resources.view(resources.ALIASES.get(resource, resource))
    await Listing(server.client(), ListRequest(view, (), "team-a", how), lines.append).once()
    return lines


async def test_a_set_is_listed_with_what_it_has_found_and_what_it_holds(server: APIServer) -> None:
    add(server, kinds.TARGET_SETS, "mine", a_set(entry("c2"), entry("c3", "Slow", ready=False)))
    add(server, kinds.CLUSTER_TARGET_SETS, "gpu", a_set(entry("c4"), held="MostProfilesGone"))
    heading, mine, gpu = [line.split() for line in await listed(server, "table", "ts")]
    assert heading == ["NAMESPACE", "NAME", "POLICY", "FOUND", "READY", "REASON", "HELD", "AGE"]
    assert mine[:7] == ["team-a", "mine", "Drain", "2", "1", "TargetsReady", "No"]
    assert gpu[:7] == ["<none>", "gpu", "Drain", "1", "1", "TargetsReady", "MostProfilesGone"]


async def test_a_set_that_no_agent_has_seen_has_no_numbers(server: APIServer) -> None:
    orphan = {"profiles": {"selector": {}}, "removal": {"policy": "Orphan"}}
    add(server, kinds.CLUSTER_TARGET_SETS, "gpu", {"spec": orphan})
    [_heading, gpu] = [line.split() for line in await listed(server, "table")]
    assert gpu[:7] == ["<none>", "gpu", "Orphan", "<none>", "<none>", "<none>", "<none>"]


async def test_the_wide_table_says_how_to_have_what_is_held_removed(server: APIServer) -> None:
    add(server, kinds.CLUSTER_TARGET_SETS, "gpu", a_set(entry("c2"), held="MostProfilesGone"))
    [_heading, gpu] = await listed(server, "wide")
    assert gpu.endswith("1 ready   annotate it")


async def test_sets_are_named_as_kubectl_takes_them(server: APIServer) -> None:
    add(server, kinds.CLUSTER_TARGET_SETS, "gpu", a_set())
    add(server, kinds.TARGET_SETS, "mine", a_set())
    assert await listed(server, "name") == [
        "targetset.vnode.dev/mine",
        "clustertargetset.vnode.dev/gpu",
    ]


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], ""),
        ([entry("c2"), entry("c3")], "2 ready"),
        ([entry("c2"), entry("c3", "Draining")], "c3: Draining, 1 ready"),
        ([entry("c2", "NameTaken", ready=False)], "c2: NameTaken"),
        (
            [entry(f"c{n}", "Away", ready=False) for n in range(7)],
            "c0: Away, c1: Away, c2: Away, c3: Away, c4: Away, 2 more",
        ),
        (
            [entry(f"c{n}") for n in range(reporting.MOST_LISTED)],
            f"{reporting.MOST_LISTED} ready (of the first {reporting.MOST_LISTED})",
        ),
    ],
)
def test_targets_that_are_not_ready_are_named_with_their_reasons(
    entries: list[Object], text: str
) -> None:
    assert set_cells.targets(a_set(*entries)) == text


def test_shells_complete_the_resource() -> None:
    assert "targetsets" in [item.value for item in candidates(["get", "target"])]
