"""Builds the first page: the drawing, the flow of pods, and the capacity of targets. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final

from vnode.api import resources
from vnode.dashboard import graph, page
from vnode.dashboard.markup import Content, Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.stages import NOWHERE, Stage
from vnode.dashboard.view_model import NO_TARGET, TargetView, ViewModel
from vnode.insight import accelerators, accounts
from vnode.insight.accelerators import AcceleratorUse

_NOT_MEASURED: Final = "No metrics API answers here: what pods use is not known."


def build(view: ViewModel, paths: Paths) -> bytes:
    """Build the page."""
    live = join(
        [
            page.notices(view.notices),
            _section("Clusters", _clusters(view, paths)),
            _section("Flow of pods", _flow(view, paths)),
            _section("Capacity of targets", _capacity(view)),
            _section("Accelerators", _accelerators(view)) if view.accelerators else None,
        ]
    )
    return page.frame(paths, "Overview", live, cluster=view.cluster, now=view.now, here="Overview")


def _section(title: str, content: Content) -> Markup:
    name = title.split(maxsplit=1)[0].lower()
    return tag("section", tag("h2", title, id=name), content, class_="card", aria_labelledby=name)


def _clusters(view: ViewModel, paths: Paths) -> Markup:
    if view.targets or view.sources:
        return tag("div", graph.draw(view, paths), class_="wide")

    return page.empty(
        "This cluster is not connected to any other. ",
        tag("code", "vnode connect"),
        " connects it.",
    )


def _flow(view: ViewModel, paths: Paths) -> Markup:
    heads = [
        tag("th", tag("span", stage.title, title=stage.meaning), scope="col", class_="number")
        for stage in Stage
    ]
    rows = [_flow_row(paths, "All pods", "", view.flow.total, "total")]
    if waiting := view.flow.by_node.get(NOWHERE):
        rows.append(_flow_row(paths, "No target yet", NO_TARGET, waiting))

    rows += [
        _flow_row(paths, target.name, target.name, view.flow.by_node.get(target.node, Counter()))
        for target in view.targets
    ]
    return _table(tag("tr", tag("th", "Target", scope="col"), *heads), rows, "flow")


def _flow_row(
    paths: Paths, title: str, target: str, counts: Counter[Stage], class_: str | None = None
) -> Markup:
    """Make a row; its numbers are links to their pods."""
    return tag(
        "tr",
        tag("th", title, scope="row"),
        *(_flow_cell(paths, title, target, stage, counts[stage]) for stage in Stage),
        class_=class_,
    )


def _flow_cell(paths: Paths, title: str, target: str, stage: Stage, count: int) -> Markup:
    if not count:
        return tag("td", "·", class_="number none")

    link = tag(
        "a",
        str(count),
        href=paths.pods(stage=stage.value, target=target),
        id=f"flow-{target}-{stage.value}",
        aria_label=f"{count} {stage.value}, {title}",
    )
    return tag("td", link, class_="number", data_tone=stage.value)


def _table(head: Markup, rows: list[Markup], class_: str | None = None) -> Markup:
    return tag(
        "div", tag("table", tag("thead", head), tag("tbody", *rows), class_=class_), class_="wide"
    )


def _capacity(view: ViewModel) -> Markup:
    if not view.targets:
        return page.empty("No targets.")

    is_measured = any(target.use and target.use.used is not None for target in view.targets)
    kinds = ("asked for", "used") if is_measured else ("asked for",)
    heads = ["Target", "State", "Pods", *(f"{n} {k}" for n in ("CPU", "Memory") for k in kinds)]
    first_row = tag(
        "tr",
        *(
            tag("th", head, scope="col", class_="number" if i > 1 else None)
            for i, head in enumerate(heads)
        ),
    )
    rows = [_capacity_row(target, is_measured=is_measured) for target in view.targets]
    unknown = None if is_measured else page.empty(_NOT_MEASURED)
    return join([_table(first_row, rows), unknown])


def _accelerators(view: ViewModel) -> Markup:
    heads = ("Target", "Resource", "Model", "Total", "Free", "Largest node")
    sizes = (f"Fits {size}" for size in accelerators.SIZES)
    first_row = tag(
        "tr",
        *(
            tag("th", head, scope="col", class_="number" if i > 2 else None)
            for i, head in enumerate((*heads, *sizes, "May grow"))
        ),
    )
    return _table(first_row, [_accelerator_row(use) for use in view.accelerators])


def _accelerator_row(use: AcceleratorUse) -> Markup:
    numbers = (use.free, use.largest, *(use.fits or (None,) * len(accelerators.SIZES)))
    total = "?" if use.total is None else str(use.total)
    cells = (total, *map(use.text, numbers), f"+{use.growth}" if use.growth else "")
    return tag(
        "tr",
        tag("th", use.target, scope="row"),
        tag("td", use.resource),
        tag("td", use.model),
        *(
            tag("td", "?" if cell == accelerators.UNKNOWN else cell, class_="number")
            for cell in cells
        ),
    )


def _capacity_row(target: TargetView, *, is_measured: bool) -> Markup:
    use = target.use
    tone = "bad" if not target.is_ready else "busy" if target.is_cordoned else "good"
    state = target.reason if not target.is_ready else "Cordoned" if target.is_cordoned else "Ready"
    message = tag("span", target.message, class_="said") if not target.is_ready else None
    return tag(
        "tr",
        tag("th", target.name, scope="row"),
        tag("td", page.badge(state, tone), message),
        tag("td", str(use.pods) if use else "?", class_="number"),
        *(
            _amount(use, resource, is_used=is_used)
            for resource in (resources.CPU, resources.MEMORY)
            for is_used in ((False, True) if is_measured else (False,))
        ),
    )


def _amount(use: accounts.TargetUse | None, resource: str, *, is_used: bool) -> Markup:
    amounts = None if use is None else use.used if is_used else use.requested
    if use is None or amounts is None:
        return tag("td", "?", class_="number none", title="not known")

    part, whole = amounts.get(resource, 0), use.allocatable.get(resource, 0)
    share = accounts.fraction(amounts, use.allocatable, resource) or 0.0
    meter = _meter(share, "used" if is_used else "asked")
    return tag("td", _of(resource, part, whole), meter, class_="number")


def _of(resource: str, part: int, whole: int) -> str:
    """Format `10.5 of 96` cores, or `22 of 768 GiB`."""
    unit, name = (1000, "") if resource == resources.CPU else (1 << 30, " GiB")
    return f"{_short(part / unit)} of {_short(whole / unit)}{name}"


def _short(amount: float) -> str:
    """Format with one decimal, unless that is 0."""
    return f"{amount:.1f}".removesuffix(".0")


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
