"""Builds the first page: what is wrong, the drawing, the flow of pods, the capacity of targets, and
what changed in the last hour. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final

from vnode.api import enumeration, resources
from vnode.dashboard import amounts, graph, page, tables, troubles_section
from vnode.dashboard.markup import Content, Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.stages import NOWHERE, Stage
from vnode.dashboard.tables import PageCell, PageColumn, PageRow
from vnode.dashboard.view_model import NO_TARGET, TargetView, ViewModel
from vnode.insight import accelerators, accounts
from vnode.insight.accelerators import AcceleratorUse

_SOURCES: Final = 20  # named where they are not drawn
_TITLES: Final = {resources.CPU: "CPU", resources.MEMORY: "Memory"}
_UNKNOWN: Final = PageCell("?", hint="not known", absent=True)
_NOT_MEASURED: Final = "No metrics API answers here: what pods use is not known."


def build(view: ViewModel, paths: Paths) -> bytes:
    """Build the page."""
    live = join(
        [
            page.notices(view.notices),
            troubles_section.troubles(view.troubles, paths, view.now),
            page.section("Clusters", _clusters(view, paths)),
            page.section("Flow of pods", _flow(view, paths)),
            page.section("Capacity of targets", _capacity(view, paths)),
            page.section("Accelerators", _accelerators(view)) if view.accelerators else None,
            troubles_section.changes(view.changes, paths, view.now),
        ]
    )
    return page.frame(paths, "Overview", live, cluster=view.cluster, now=view.now, here="Overview")


def _clusters(view: ViewModel, paths: Paths) -> Markup:
    if view.targets or view.sources:
        names = enumeration.some([source.name for source in view.sources], _SOURCES)
        words = f"{len(view.targets)} targets. Pods may come from {names or 'no other cluster'}."
        drawing = tag("div", graph.draw(view, paths), class_="wide drawing")
        return join([drawing, tag("p", words, class_="narrow")])

    return page.empty(
        "This cluster is not connected to any other. ",
        tag("code", "vnode connect"),
        " connects it.",
    )


def _flow(view: ViewModel, paths: Paths) -> Markup:
    stages = (PageColumn(stage.title, is_number=True, meaning=stage.meaning) for stage in Stage)
    rows = [_flow_row(paths, "All pods", "", view.flow.total, "total")]
    if waiting := view.flow.by_node.get(NOWHERE):
        rows.append(_flow_row(paths, "No target yet", NO_TARGET, waiting))

    rows += [
        _flow_row(paths, target.name, target.name, view.flow.by_node.get(target.node, Counter()))
        for target in view.targets
    ]
    return tables.build((PageColumn("Target", names_row=True), *stages), rows, "flow")


def _flow_row(
    paths: Paths, title: str, target: str, counts: Counter[Stage], style: str | None = None
) -> PageRow:
    """Make a row; its numbers are links to their pods."""
    cells = (flow_cell(paths, title, target, stage, counts[stage]) for stage in Stage)
    return PageRow((title, *cells), style or (None if counts.total() else "empty-row"))


def flow_cell(paths: Paths, title: str, target: str, stage: Stage, count: int) -> PageCell:
    """Make the cell of a number of pods, which leads to them."""
    if not count:
        return PageCell("·", absent=True)

    link = tag(
        "a",
        str(count),
        href=paths.pods(stage=stage.value, target=target),
        id=f"flow-{target}-{stage.value}",
        aria_label=f"{count} {stage.value}, {title}",
    )
    return PageCell(link, tone=stage.value)


def _capacity(view: ViewModel, paths: Paths) -> Markup:
    if not view.targets:
        return page.empty("No targets.")

    is_measured = any(target.use and target.use.used is not None for target in view.targets)
    kinds = ("asked for", "used", "free") if is_measured else ("asked for", "free")
    shown = [(name, kind) for name in (resources.CPU, resources.MEMORY) for kind in kinds]
    columns = (
        PageColumn("Target", names_row=True),
        PageColumn("State"),
        PageColumn("Pods", is_number=True),
        *(PageColumn(f"{_TITLES[name]} {kind}", is_number=True) for name, kind in shown),
    )
    rows = [
        PageRow((*_state(target, paths), *(_amount(target, *each) for each in shown)))
        for target in view.targets
    ]
    unknown = None if is_measured else page.empty(_NOT_MEASURED)
    return join([tables.build(columns, rows, "capacity"), unknown])


def _state(target: TargetView, paths: Paths) -> tuple[Content, Content, str]:
    name = tag("a", target.name, href=paths.target(target.name), id=f"target-{target.name}")
    message = tag("span", target.message, class_="said") if not target.is_ready else None
    state = join([page.badge(target.state, target.tone), message])
    return name, state, str(target.use.pods) if target.use else "?"


def _accelerators(view: ViewModel) -> Markup:
    numbers = ("Total", "Free", "Largest node", *(f"Fits {size}" for size in accelerators.SIZES))
    columns = (
        PageColumn("Target", names_row=True),
        PageColumn("Resource"),
        PageColumn("Model"),
        *(PageColumn(title, is_number=True) for title in (*numbers, "May grow")),
    )
    return tables.build(columns, map(_accelerator_row, view.accelerators))


def _accelerator_row(use: AcceleratorUse) -> PageRow:
    numbers = (use.free, use.largest, *(use.fits or (None,) * len(accelerators.SIZES)))
    total = "?" if use.total is None else str(use.total)
    cells = (total, *map(use.text, numbers), f"+{use.growth}" if use.growth else "")
    shown = ("?" if cell == accelerators.UNKNOWN else cell for cell in cells)
    return PageRow((use.target, use.resource, use.model, *shown))


def _amount(target: TargetView, resource: str, kind: str) -> PageCell:
    use = target.use
    if kind == "free":
        free = target.free
        return _UNKNOWN if free is None else PageCell(amounts.text(resource, free.get(resource, 0)))

    part = None if use is None else use.used if kind == "used" else use.requested
    if use is None or part is None:
        return _UNKNOWN

    share = accounts.fraction(part, use.allocatable, resource) or 0.0
    text = amounts.of(resource, part.get(resource, 0), use.allocatable.get(resource, 0))
    return PageCell(join([text, _meter(share, "used" if kind == "used" else "asked")]))


def _meter(part: float, tone: str) -> Markup:
    return tag(
        "svg",
        tag("rect", width="100", height="6", class_="rail"),
        tag("rect", width=f"{100 * min(part, 1.0):.1f}", height="6", class_="fill"),
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        class_="meter",
        data_tone=tone,
        aria_hidden="true",
    )
