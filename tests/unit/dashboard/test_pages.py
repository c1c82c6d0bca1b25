"""The pages as built from objects of clusters, well-formed or hostile."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.dashboard.test_markup import HOSTILE, Reader, read
from vnode.api import keys
from vnode.api.objects import Object
from vnode.dashboard import (
    overview,
    pod_page,
    pods_page,
    search_page,
    target_page,
    view_model,
)
from vnode.dashboard.page import Paths
from vnode.dashboard.stages import Stage
from vnode.dashboard.view_model import ModelInputs, ViewModel
from vnode.insight.story import Chapter, Story
from vnode.insight.story_lines import Line
from vnode.insight.verdicts import PodState, Verdict
from vnode.pods.source.candidates import CandidateState

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PATHS = Paths("/base")
NODE = "admiralty-default-c2"
ELEMENTS = {
    *("html", "head", "meta", "title", "link", "script", "noscript", "body", "a", "header", "span"),
    *("nav", "p", "time", "main", "h1", "h2", "h3", "div", "section", "svg", "g", "path", "rect"),
    *("text", "circle", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "ol", "li"),
    *("form", "label", "select", "option", "input", "button", "dl", "dt", "dd"),
}


def pod(name: str = "web", node: str = "", phase: str = "Pending", **more: Any) -> Object:
    spec: Object = {"schedulerName": keys.PROXY_SCHEDULER, "containers": [{"name": "main"}]}
    if node:
        spec["nodeName"] = node

    metadata = {"name": name, "namespace": "default", "uid": name, **more.pop("metadata", {})}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **more}}


def refused(message: str) -> list[Object]:
    return [{"type": "PodScheduled", "status": "False", "message": message}]


def waiting(reason: str, message: str = "") -> Object:
    """Return the status of a container that does not run."""
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}


def target(name: str = "c2", *, ready: bool = True, message: str = "") -> Object:
    condition = {"type": "Ready", "status": str(ready), "reason": "Some", "message": message}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "status": {"conditions": [condition]},
    }


def node(**allocatable: str) -> Object:
    labels = {keys.TARGET_NAMESPACE: "default", keys.TARGET_NAME: "c2"}
    return {
        "metadata": {"name": NODE, "labels": labels},
        "status": {"allocatable": allocatable or {"cpu": "8", "memory": "16Gi"}},
    }


def inputs(pods: list[Object] = (), **more: Any) -> ModelInputs:  # type: ignore[assignment]
    known: dict[str, Any] = {
        "cluster": "c1",
        "targets": [target()],
        "nodes": [node()],
        "sources": [],
        "candidates": {},
        "used": {},
    }
    return ModelInputs(pods=list(pods), **{**known, **more})


def made(pods: list[Object] = (), **more: Any) -> ViewModel:  # type: ignore[assignment]
    return view_model.make(inputs(pods, **more), NOW)


def test_the_flow_counts_each_pod_at_its_stage_and_target() -> None:
    pods = [
        pod("queued"),
        pod("asks"),
        pod("bound", NODE),
        pod("runs", NODE, "Running"),
        pod("ends", NODE, "Running", metadata={"deletionTimestamp": "x"}),
        pod("done", NODE, "Succeeded"),
        pod("crashes", NODE, "Running", containerStatuses=[waiting("CrashLoopBackOff")]),
        pod("failed", NODE, "Failed"),
    ]
    flow = made(pods, candidates={"asks": {NODE: CandidateState.WAITING}}).flow
    assert all(flow.total[stage] == 1 for stage in Stage)
    at_target = [stage for stage in Stage if flow.by_node[NODE][stage]]
    assert at_target == list(Stage)[1:]
    assert flow.by_node[""][Stage.PENDING] == 1


def test_a_pod_that_every_target_rejected_is_pending_and_comes_first() -> None:
    pods = [pod("a-runs", NODE, "Running"), pod("b-refused", conditions=refused("c2: no room"))]
    shown = made(pods, candidates={"b-refused": {NODE: CandidateState.REJECTED}})
    assert [staged.status for staged in view_model.matching(shown)] == ["No target fits", "Running"]
    assert "c2: no room" in read(pods_page.build(shown, PATHS, {}).decode()).text


def test_pods_that_fail_come_first_and_say_what_fails() -> None:
    pods = [
        pod("a-runs", NODE, "Running"),
        pod("b-refused", conditions=refused("c2: no room")),
        pod("c-image", NODE, containerStatuses=[waiting("ImagePullBackOff", "no such image")]),
        pod("d-failed", NODE, "Failed", reason="Evicted", message="low on memory"),
    ]
    found = view_model.matching(made(pods))
    assert [(staged.stage, staged.status) for staged in found] == [
        (Stage.FAILING, "ImagePullBackOff"),
        (Stage.PENDING, "No target fits"),
        (Stage.RUNNING, "Running"),
        (Stage.FAILED, "Evicted"),
    ]
    text = read(pods_page.build(made(pods), PATHS, {}).decode()).text
    assert "container main: ImagePullBackOff: no such image" in text
    assert "the pod has failed: Evicted: low on memory" in text


def test_pods_of_a_target_that_does_not_answer_do_not_run_for_all_that_is_known() -> None:
    pods = [pod("runs", NODE, "Running"), pod("done", NODE, "Succeeded"), pod("queued")]
    shown = made(pods, targets=[target(ready=False)])
    assert [(staged.stage, staged.status) for staged in view_model.matching(shown)] == [
        (Stage.FAILING, "TargetUnreachable"),
        (Stage.PENDING, "Pending"),
        (Stage.FINISHED, "Succeeded"),
    ]
    page = overview.build(shown, PATHS).decode()
    assert "1 failing, 1 waiting" in read(page).text
    assert 'data-tone="failing"' in page


def test_pods_are_found_by_namespace_target_stage_and_name() -> None:
    shown = made(
        [pod("one", NODE, "Running"), pod("two"), pod("three")],
        candidates={"three": {NODE: CandidateState.WAITING}},
    )

    def names(**filters: str) -> list[str]:
        return [staged.pod["metadata"]["name"] for staged in view_model.matching(shown, **filters)]

    assert names(target="default/c2") == ["three", "one"]
    assert names(target=view_model.NO_TARGET) == ["two"]
    assert names(stage="running") == ["one"]
    assert names(text="TW") == ["two"]
    assert names(namespace="elsewhere") == []


def test_the_overview_says_capacity_use_and_what_cannot_be_read() -> None:
    shown = made(
        [pod("runs", NODE, "Running")],
        used={NODE: {"cpu": 4000, "memory": 1 << 30}},
        notices=("nodes cannot be read",),
    )
    text = read(overview.build(shown, PATHS).decode()).text
    for expected in ("4 of 8", "1 of 16 GiB", "0 of 8", "nodes cannot be read"):
        assert expected in text


def test_a_target_that_is_not_ready_says_why() -> None:
    shown = made(targets=[target(ready=False, message="the token has ended")], nodes=[])
    page = read(overview.build(shown, PATHS).decode())
    assert "the token has ended" in page.text
    assert "its capacity is not known" in page.text


def test_more_pods_than_a_page_takes_are_counted() -> None:
    pods = [pod(f"web-{number}") for number in range(pods_page.MAX_ROWS + 2)]
    assert "2 more: narrow them down" in pods_page.build(made(pods), PATHS, {}).decode()


def hostile_objects(text: str) -> ModelInputs:
    """Take this for every text of a cluster that the pages show."""
    bad = pod(text, conditions=refused(text), metadata={"namespace": text, "uid": "bad"})
    source = {"metadata": {"name": text}, "spec": {"userName": text}}
    return ModelInputs(
        text,
        [{**target(text, ready=False, message=text)}],
        [{**node(), "metadata": {"name": text, "labels": {}}}],
        [source],
        [bad, pod("on", text, reason=text), pod("asks")],
        {"asks": {text: CandidateState.WAITING}},
        {},
        (text,),
    )


@settings(deadline=None)
@given(HOSTILE, HOSTILE)
def test_no_text_of_a_cluster_becomes_part_of_a_page(text: str, sent: str) -> None:
    shown = view_model.make(hostile_objects(text), NOW)
    built = Story(
        text,
        text,
        (Chapter(text, (Line(text, text),)),),
        Verdict(PodState.UNSCHEDULABLE, text, (text,)),
    )
    pages = [
        overview.build(shown, PATHS),
        pods_page.build(shown, PATHS, dict.fromkeys(pods_page.FILTERS, sent)),
        pods_page.build(shown, PATHS, {}),
        search_page.build(shown, PATHS, sent),
        search_page.build(shown, PATHS, text),
        *(target_page.build(shown, PATHS, each) for each in shown.targets),
        target_page.absent(shown, PATHS, sent),
        pod_page.build(built, PATHS, cluster=text, now=NOW),
        pod_page.absent(text, text, PATHS, cluster=text, now=NOW),
    ]
    for page in pages:
        _check(read(page.decode()))


def _check(page: Reader) -> None:
    assert set(page.elements) <= ELEMENTS
    assert page.elements.count("script") == 1
    for name, value in page.attributes:
        assert name != "style"
        assert not name.startswith("on")
        if name in ("href", "src", "action", "data-events"):
            assert value is not None
            assert value.startswith(("/base/", "#content")), value
            assert not value.startswith("//")


@given(st.text(), st.text())
def test_addresses_lead_nowhere_else(namespace: str, name: str) -> None:
    path = PATHS.pod(namespace, name)
    assert path.startswith("/base/pods/")
    assert path.count("/") == 4


def test_accelerators_are_shown_where_a_target_has_some() -> None:
    assert "Accelerators" not in read(overview.build(made(), PATHS).decode()).text
    shown = made(nodes=[node(**{"cpu": "8", "nvidia.com/gpu": "3"})])
    text = read(overview.build(shown, PATHS).decode()).text
    assert "Largest node" in text
    assert "nvidia.com/gpu" in text
