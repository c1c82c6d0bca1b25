"""The page of one target, and the search that leads to it."""

from __future__ import annotations

from typing import Any

from tests.unit.dashboard.test_markup import read
from tests.unit.dashboard.test_pages import NODE, PATHS, made, pod, target
from tests.unit.insight.test_accelerators import make_node, pod_on, summary_of
from vnode.api.objects import Object
from vnode.dashboard import search_page, target_page
from vnode.dashboard.page import Paths
from vnode.dashboard.tables import PageCell, PageColumn, PageRow, build
from vnode.dashboard.view_model import ViewModel


def text_of(view: ViewModel) -> str:
    [only] = [each for each in view.targets if each.name == "default/c2"]
    return read(target_page.build(view, PATHS, only).decode()).text


def with_summary(summary: Object, **more: Any) -> ViewModel:
    return made(summaries={NODE: (summary, True)}, **more)


def sought(view: ViewModel, text: str) -> str:
    return read(search_page.build(view, PATHS, text).decode()).text


def test_free_room_is_told_by_model_with_what_taints_keep() -> None:
    tainted = make_node("b", "T4", gpu="1")
    tainted["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    summary = summary_of(make_node("a", "A100", gpu="8"), tainted, taken=pod_on("a", 5))
    text = text_of(with_summary(summary))
    assert "A100164512 GiB3" in text  # one node with 64 CPUs and 3 of its devices free
    assert "T4164512 GiB1{team: a}" in text
    assert "CPU8" in text


def test_a_target_that_does_not_tell_its_rows_says_so_and_an_outdated_summary_is_none() -> None:
    assert "does not say what its nodes have free" in text_of(made())
    stale = made(summaries={NODE: (summary_of(make_node("a", "A100")), False)})
    assert "does not say what its nodes have free" in text_of(stale)
    assert "No node there is ready" in text_of(with_summary(summary_of()))


def test_its_pods_conditions_and_other_targets_of_its_cluster_are_shown() -> None:
    first, second = target(), target("twin")
    for each in (first, second):
        each["status"]["clusterUID"] = "some-uid"

    view = made([pod("runs", NODE, "Running"), pod("queued")], targets=[first, second])
    text = text_of(view)
    assert "runs" in text
    assert "queued" not in text
    assert "Same clusterdefault/twin" in text
    assert "Ready" in text


def test_many_pods_are_cut_with_a_link_to_all() -> None:
    pods = [pod(f"p{number}", NODE, "Running") for number in range(60)]
    assert "All 60" in text_of(made(pods))


def test_a_target_without_a_node_or_conditions_has_a_page() -> None:
    bare = {"metadata": {"name": "c2", "namespace": "default"}}
    text = text_of(made(targets=[bare], nodes=[]))
    assert "Its capacity is not known." in text
    assert "It was not checked yet" in text


def test_a_cluster_target_has_a_path_of_one_part() -> None:
    assert Paths("/base").target("gpu") == "/base/targets/gpu"
    assert Paths("/base").target("team-a/gpu") == "/base/targets/team-a/gpu"


def test_targets_namespaces_and_pods_are_found_by_a_part_of_their_names() -> None:
    view = made([pod("web", NODE, "Running")])
    everything = sought(view, " DEFAULT ")
    for expected in ("default/c2", "1 pods", "web"):
        assert expected in everything

    only_pod = sought(view, "web")
    assert "Namespaces" not in only_pod
    assert "default/c2" in only_pod  # where it runs
    assert "Nothing that you may see has it" in sought(view, "nobody")
    assert "Write a part of the name" in sought(view, "  ")


def test_a_cell_of_a_table_has_its_title_with_it_for_narrow_screens() -> None:
    columns = (
        PageColumn("Name", names_row=True),
        PageColumn("Pods", is_number=True, meaning="in all"),
    )
    html = str(build(columns, [PageRow(("a", PageCell("0", absent=True)))]))
    assert '<td class="number none" role="cell" data-label="Pods">0</td>' in html
    assert '<th scope="row" role="rowheader">a</th>' in html
    assert '<span title="in all">Pods</span>' in html
