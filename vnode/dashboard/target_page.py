"""Builds the page of one Target: how it stands, its room, its pods and its conditions. Pure.

What it has free is what its cluster says, rounded down: by sums, and by rows of nodes that are
alike (`vnode.api.rows`), each with the model of its devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from vnode.api import objects, resources, taints
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows, model_of
from vnode.dashboard import (
    amounts,
    overview,
    page,
    pods_page,
    tables,
    troubles_section,
    view_model,
)
from vnode.dashboard.markup import Content, Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.stages import Stage
from vnode.dashboard.tables import PageCell, PageColumn, PageRow
from vnode.dashboard.view_model import TargetView, ViewModel
from vnode.insight import accounts
from vnode.scheduling import reported
from vnode.targets import conditions

_MAX_ROWS: Final = 60  # of nodes that are alike
_MAX_PODS: Final = 50
_TITLES: Final = {resources.CPU: "CPU", resources.MEMORY: "Memory", resources.PODS: "Pods"}
_UNKNOWN: Final = PageCell("?", hint="not known", absent=True)
_NO_ROWS: Final = "It does not say what its nodes have free: it runs Admiralty or an older vnode, "
_NO_PODS: Final = "No pods run or wait there."


def build(view: ViewModel, paths: Paths, target: TargetView) -> bytes:
    """Build the page."""
    own = tuple(replace(each, target="") for each in view.troubles if each.target == target.name)
    happened = tuple(each for each in view.changes if each.target == target.name)
    live = join(
        [
            page.notices(view.notices),
            _now(view, target),
            troubles_section.troubles(own, paths, view.now),
            page.section("Room", _room(target)),
            page.section("Free nodes", _rows(reported.read_rows(target.summary))),
            page.section("Pods", *_pods(view, paths, target)),
            page.section("Conditions", _conditions(target, view.now)),
            troubles_section.changes(happened, paths, view.now),
        ]
    )
    return _framed(view, paths, target.name, live)


def absent(view: ViewModel, paths: Paths, key: str) -> bytes:
    """Build the page of a Target that does not exist."""
    live = tag("section", page.empty(f"There is no Target or ClusterTarget {key}."), class_="card")
    return _framed(view, paths, key, live)


def _framed(view: ViewModel, paths: Paths, key: str, live: Markup) -> bytes:
    back = tag("p", tag("a", "All targets", href=f"{paths.overview}#capacity"), class_="back")
    title = f"Target {key}"
    return page.frame(paths, title, live, cluster=view.cluster, now=view.now, here="", above=back)


def _now(view: ViewModel, target: TargetView) -> Markup:
    ago = page.ago(target.since, view.now)
    since = tag("span", ago, class_="status") if ago is not None else None
    return tag(
        "section",
        tag("h2", page.badge(target.state, target.tone), since),
        tag("p", target.message, class_="verdict") if target.is_ready else None,
        tag("dl", *(part for pair in _facts(view, target) for part in pair), class_="facts"),
        class_="card",
        aria_label="How it stands now",
    )


def _facts(view: ViewModel, target: TargetView) -> Iterator[tuple[Markup, Markup]]:
    uid = _cluster(target)
    alike = [
        other.name
        for other in view.targets
        if uid and other.name != target.name and _cluster(other) == uid
    ]
    lasting = objects.condition(target.obj, conditions.CREDENTIALS_LAST) or {}
    is_told = lasting.get("status") == "True"  # else it stands under what needs attention
    for title, text in (
        ("Node", target.node),
        ("vnode there", conditions.agent_version(target.obj)),
        ("Cluster", uid),
        ("Same cluster", ", ".join(alike)),
        ("Credentials", str(lasting.get("message") or "") if is_told else ""),
    ):
        if text:
            yield tag("dt", title), tag("dd", text)


def _cluster(target: TargetView) -> str:
    return str(objects.status(target.obj).get("clusterUID") or "")


def _room(target: TargetView) -> Markup:
    use = target.use
    if use is None:
        return page.empty("Its capacity is not known.")

    _free, largest = reported.read_free(target.summary)
    columns = (
        PageColumn("Resource", names_row=True),
        PageColumn("Allocatable", is_number=True),
        PageColumn("Asked for", is_number=True, meaning="by pods of this cluster"),
        PageColumn("Used", is_number=True, meaning="by pods of this cluster"),
        PageColumn("Free", is_number=True, meaning="asked for by no pod there, whosever it is"),
        PageColumn("Free on one", is_number=True, meaning="the most that one node has free"),
    )
    sums = (use.allocatable, use.requested)
    measured = (use.used, target.free, largest)
    rows = [
        PageRow(
            (
                _TITLES.get(name, name),
                *(amounts.text(name, found.get(name, 0)) for found in sums),
                *(
                    _UNKNOWN if found is None or name not in found else _text(name, found)
                    for found in measured
                ),
            )
        )
        for name in _ordered(use)
    ]
    return tables.build(columns, rows)


def _text(name: str, found: Resources) -> str:
    return amounts.text(name, found[name])


def _ordered(use: accounts.TargetUse) -> list[str]:
    """Return the resources that a target offers, those that all have first."""
    first = [name for name in _TITLES if name in use.allocatable]
    return first + sorted(use.allocatable.keys() - _TITLES.keys())


def _rows(found: Rows | None) -> Markup:
    if found is None:
        return page.empty(f"{_NO_ROWS}or was not reached yet.")

    if not found.alike:
        return page.empty("No node there is ready and schedulable.")

    common: list[str] = [resources.CPU, resources.MEMORY]
    names = [name for name in common if name in found.resources]
    names += sorted(name for name in found.resources if resources.is_extended(name))
    columns = (
        PageColumn("Model", names_row=True),
        PageColumn("Nodes", is_number=True),
        *(PageColumn(f"{_TITLES.get(name, name)} free on each", is_number=True) for name in names),
        PageColumn("Taints"),
    )
    listed = [(alike, row) for alike in found.alike for row in alike.rows]
    listed.sort(key=lambda each: [-each[1].free.get(name, 0) for name in reversed(names)])
    rows = [_row(found, names, *each) for each in listed[:_MAX_ROWS]]
    rest = max(0, len(listed) - _MAX_ROWS)
    more = f"{rest} more rows. " if rest else ""
    more += "" if found.complete else f"Not all of its {found.nodes} nodes are listed."
    return join([tables.build(columns, rows), page.empty(more) if more else None])


def _row(found: Rows, names: list[str], alike: AlikeNodes, row: RowOfNodes) -> PageRow:
    free = (amounts.text(name, row.free.get(name, 0)) for name in names)
    kept = ", ".join(taints.describe(taint) for taint in alike.taints)
    return PageRow((model_of(alike.labels, found.keys) or "no model", str(row.count), *free, kept))


def _pods(view: ViewModel, paths: Paths, target: TargetView) -> Iterator[Content]:
    found = view_model.matching(view, target=target.name)
    if not found:
        yield page.empty(_NO_PODS)
        return

    counts = view.flow.by_node.get(target.node, Counter())
    stages = (PageColumn(stage.title, is_number=True, meaning=stage.meaning) for stage in Stage)
    cells = (
        overview.flow_cell(paths, target.name, target.name, stage, counts[stage]) for stage in Stage
    )
    yield tables.build(tuple(stages), [PageRow(tuple(cells))], "flow stages")
    yield pods_page.of_pods(view, paths, found[:_MAX_PODS])
    if len(found) > _MAX_PODS:
        everything = tag("a", f"All {len(found)}", href=paths.pods(target=target.name))
        yield page.empty("", everything)


def _conditions(target: TargetView, now: datetime) -> Markup:
    listed = objects.status(target.obj).get("conditions") or ()
    if not listed:
        return page.empty("It was not checked yet: see that the agent of this cluster runs.")

    columns = (
        PageColumn("Condition", names_row=True),
        PageColumn("Status"),
        PageColumn("Since"),
        PageColumn("Reason"),
        PageColumn("Message"),
    )
    rows = (
        PageRow(
            (
                str(each.get("type") or ""),
                page.badge(status := str(each.get("status") or "Unknown"), _tone(status)),
                page.ago(str(each.get("lastTransitionTime") or ""), now),
                str(each.get("reason") or ""),
                tag("span", str(each.get("message") or ""), class_="said"),
            )
        )
        for each in listed
    )
    return tables.build(columns, rows, "conditions")


def _tone(status: str) -> str:
    return {"True": "good", "False": "busy"}.get(status, "still")
