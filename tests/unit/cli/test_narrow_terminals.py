"""On a terminal of 80 columns no table and no text is wider; pipes get every word."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli import fitting, tables, terminal, version
from vnode.cli.doctor.findings import Finding, Level
from vnode.cli.doctor.findings import lines as doctor_lines
from vnode.cli.explain import rendering
from vnode.cli.fitting import ShownColumn
from vnode.cli.get import resources
from vnode.cli.get.listing import Listing, ListRequest
from vnode.cli.get.views import View
from vnode.cli.plan import rendering as plans
from vnode.cli.plan.planning import PolicyPlan
from vnode.cli.tables import Column
from vnode.cli.top.accelerators import Reading
from vnode.cli.top.screens import Screen
from vnode.insight.accelerators import AcceleratorUse
from vnode.insight.story import Chapter, Story
from vnode.insight.story_lines import Line
from vnode.insight.verdicts import PodState, Verdict
from vnode.nodes import virtual

pytestmark = pytest.mark.looptime

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SENTENCE = "the target says that it has no room for it; add nodes there, or send it elsewhere " * 2


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes a terminal of 80 columns of the output."""
    monkeypatch.setenv("NO_COLOR", "1")

    def make() -> None:
        monkeypatch.setattr(terminal, "is_terminal", lambda: True)
        monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))

    return make


def condition(type_: str, status: str = "True") -> Object:
    return {"type": type_, "status": status, "reason": "CredentialsAccepted", "message": SENTENCE}


CONDITIONS = [condition(each) for each in ("Ready", "Accepted", "Applicable", "Agent")]
SPECS: dict[str, Object] = {
    "Target": {"kubeconfigSecret": {"name": "vnode-target-gpu-west"}},
    "Source": {"serviceAccountName": "cluster-of-team-a"},
    "AuthTokenRequest": {
        "serviceAccountName": "workers",
        "targetRef": {"kind": "ClusterTarget", "name": "gpu-west"},
    },
    "OverridePolicy": {"selector": {}, "rules": []},
    "PlacementPolicy": {"selector": {}, "mode": "Spread", "targets": []},
}
POD: Object = {
    "metadata": {"name": "web-6d4b75cb6d-hsv2v", "namespace": "team-a"},
    "spec": {
        "schedulerName": keys.PROXY_SCHEDULER,
        "nodeName": TargetKey("team-a", "gpu-west").node_name,
        "containers": [{"name": "main"}],
    },
    "status": {"phase": "Running", "podIP": "10.244.131.207"},
}


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    """Return a cluster with an object of each view, with names as people choose them."""
    server = APIServer("c1", clock)
    for view in map(resources.view, resources.NAMES):
        for kind in {selection.kind for selection in view.selections(None)}:
            if kind in (kinds.NODES, kinds.PODS):
                continue

            metadata: Object = {"name": "gpu-west", "uid": kind.kind}
            metadata |= {"namespace": "team-a"} if kind.namespaced else {}
            spec = SPECS.get(kind.kind.removeprefix("Cluster"), {})
            status = {"conditions": CONDITIONS, "message": SENTENCE}
            server.add(kind, {"metadata": metadata, "spec": spec, "status": status})

    node = virtual.registration(TargetKey("team-a", "gpu-west"))
    allocatable: Object = {"cpu": "1920", "memory": "8124532Ki", "pods": "11000"}
    capacity: Object = {"allocatable": allocatable, "conditions": CONDITIONS}
    server.add(kinds.NODES, {**node, "status": capacity})
    server.add(kinds.PODS, POD)
    return server


async def listed(server: APIServer, view: View, how: str = "table") -> list[str]:
    found: list[str] = []
    await Listing(server.client(), ListRequest(view, (), None, how), found.append).once()
    return found


@pytest.mark.parametrize("view", [*map(resources.view, resources.NAMES)], ids=resources.NAMES)
async def test_what_get_lists(server: APIServer, view: View, narrow: Callable[[], None]) -> None:
    whole, wide = await listed(server, view), await listed(server, view, "wide")
    narrow()
    found = await listed(server, view)
    assert len(found) == len(whole) > 1
    assert max(map(len, found)) <= 80
    assert all("gpu-west" in row or "web-6d4b75cb6d-hsv2v" in row for row in found[1:])
    assert await listed(server, view, "wide") == wide  # whoever asks for it wants all


def of_pods(of: bool) -> Callable[[APIServer], Any]:
    async def show(server: APIServer) -> str:
        shown: list[str] = []
        await Screen(server.client(), None, of_pods=of, show=shown.append).run(live=False)
        return shown[0]

    return show


async def accelerators(_server: APIServer) -> str:
    def use(resource: str, model: str, **given: Any) -> AcceleratorUse:
        numbers = {"total": 1024, "free": 512, "largest": 8, "fits": (512, 256, 128, 64)}
        return AcceleratorUse("team-a/gpu-west", resource, model, **{**numbers, **given})

    uses = use("nvidia.com/gpu", "NVIDIA-H100-80GB-HBM3"), use("amd.com/gpu", "", growth=64)
    return Reading(uses, (f"team-a/far was not asked what is free: {SENTENCE}",)).text()


async def versions(_server: APIServer) -> str:
    metadata = {"namespace": "a-namespace-of-somebody" * 2, "name": "gpu-west" * 5}
    return "\n".join(version.text(version.AgentVersions("0.2.0", [{"metadata": metadata}])))


@pytest.mark.parametrize(
    "show", [of_pods(False), of_pods(True), accelerators, versions], ids=lambda show: show.__name__
)
async def test_other_tables(
    server: APIServer, show: Callable[[APIServer], Any], narrow: Callable[[], None]
) -> None:
    whole = await show(server)
    assert max(map(len, whole.splitlines())) > 80
    narrow()
    found = await show(server)
    assert max(map(len, found.splitlines())) <= 80


async def test_a_column_that_says_nothing_goes_first(
    server: APIServer, narrow: Callable[[], None]
) -> None:
    narrow()
    heading, row, *_ = (await of_pods(True)(server)).splitlines()
    assert heading.split()[-2:] == ["CPU(req)", "MEM(req)"]  # no metrics API answers
    assert "<unknown>" not in row


def test_the_notes_of_a_plan(narrow: Callable[[], None]) -> None:
    policy: Any = SimpleNamespace(name="team-a/web")
    made = PolicyPlan(policy, (), (SENTENCE,))
    assert f"Note: {SENTENCE}" in plans.as_text(made, {})
    narrow()
    assert max(map(len, plans.as_text(made, {}).split("\n\n")[1].splitlines())) <= 80


FINDINGS = [
    Finding("Target team-a/gpu-west", "its condition", Level.FAIL, SENTENCE, SENTENCE),
    Finding("Target team-a/gpu-west", "credentials", Level.OK, "good"),
]


def test_doctor(narrow: Callable[[], None]) -> None:
    """A cure stays one line, which the terminal wraps: its commands are to be copied."""
    place, text, cure, _ok = doctor_lines(FINDINGS)
    assert text.endswith(SENTENCE)
    narrow()
    found = list(doctor_lines(FINDINGS))
    assert found[0] == place
    assert found.pop(-2) == cure
    assert max(map(len, found)) <= 80
    assert found[1].startswith("  FAIL  its condition        the target says")
    assert found[2].startswith(" " * 29)
    assert " ".join(" ".join(found[1:-1]).split()) == " ".join(text.split())


def test_explain(narrow: Callable[[], None]) -> None:
    verdict = Verdict(PodState.UNSCHEDULABLE, SENTENCE, (SENTENCE, "short"))
    story = Story("a/b", "Pending", (Chapter("Admission", (Line(SENTENCE),)),), verdict)
    assert f"  - {SENTENCE}\n" in rendering.as_text(story, NOW, 80)
    narrow()
    for text in (
        rendering.as_text(story, NOW, 80),
        rendering.as_summary([story], [SENTENCE]),
    ):
        cures = [f"  - {SENTENCE}", "  - short"]
        lines = text.splitlines()
        assert [line for line in lines if line.startswith("  - ")] == cures
        assert max(len(line) for line in lines if line not in cures) <= 80


COLUMNS = (
    Column("NAME", lambda row: row[0], names_row=True),
    Column("MESSAGE", lambda row: row[1]),
)


def test_what_a_watch_adds_stands_below_what_is_there(narrow: Callable[[], None]) -> None:
    narrow()
    layout = fitting.TableLayout(followed=True)
    tables.lines(COLUMNS, [("web", "")], layout=layout)
    [row] = tables.lines(COLUMNS, [("web-0", SENTENCE)], heading=False, layout=layout)
    assert len(row) == 80
    assert row.endswith("…")
    [row] = tables.lines(COLUMNS, [("a", "fine")], heading=False, layout=layout)
    assert row == "a      fine"  # below the row above, whose gap is narrow


def texts(longest: int) -> st.SearchStrategy[str]:
    return st.text("ab", min_size=1, max_size=longest) | st.sampled_from(["<none>", "<unknown>"])


@st.composite
def drawn(draw: st.DrawFn) -> list[ShownColumn]:
    rows = draw(st.integers(0, 3))
    return [
        ShownColumn(
            draw(st.text("AB", min_size=1, max_size=15)),
            draw(st.lists(texts(40), min_size=rows, max_size=rows)),
            "A",
            draw(st.booleans()),
        )
        for _ in range(draw(st.integers(1, 9)))
    ]


@given(drawn(), st.integers(20, 120))
def test_any_table_fits_unless_each_column_is_down_to_its_least(
    columns: list[ShownColumn], limit: int
) -> None:
    whole, found = fitting.natural(columns), fitting.fit(columns, limit)
    if whole.width <= limit:
        assert found == whole
        return

    assert found.width <= limit or max(found.widths) <= 6
    for number in set(whole.numbers) - set(found.numbers):
        assert columns[number].says_nothing


@given(st.text("ab…", max_size=20), st.integers(1, 20))
def test_a_text_is_cut_with_an_ellipsis(text: str, width: int) -> None:
    found = fitting.cut(text, width)
    assert found == text if len(text) <= width else (len(found) == width and found[-1] == "…")
