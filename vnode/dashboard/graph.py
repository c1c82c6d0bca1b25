"""Draws the clusters that send pods here, this one, and its targets with their pods. Pure.

The drawing is an SVG of boxes and curves. The page can be understood without it: the tables below
it have all of its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vnode.dashboard.markup import Content, Markup, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.stages import Stage
from vnode.dashboard.view_model import SourceView, TargetView, ViewModel
from vnode.insight import accounts

_WIDTH: Final = 1000
_SIDE: Final = 190  # width of the boxes of sources and of this cluster
_TARGET: Final = 330  # width of the boxes of targets
_HEIGHT: Final = {"source": 56, "own": 96, "target": 96}
_GAP: Final = 22
_MAX_SOURCES: Final = 8  # boxes; further sources share the last one
_LETTER: Final = {"name": 9.2, "plain end": 8.4, "faint": 7.8}  # approximate widths

_WAITING: Final = (Stage.PENDING, Stage.CANDIDATE)
_IN_TARGET: Final = (Stage.BOUND, Stage.RUNNING, Stage.FAILING, Stage.ENDING)


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def draw(view: ViewModel, paths: Paths) -> Markup:
    """Draw all clusters."""
    sources = _fitting(view.sources)
    height = max(
        _column(len(sources), _HEIGHT["source"]),
        _column(len(view.targets), _HEIGHT["target"]),
        _HEIGHT["own"],
    )
    left = 0.0 if not sources else (_WIDTH - _TARGET - _SIDE) / 2
    own = _Box(left + 1, (height - _HEIGHT["own"]) / 2 + 1, _SIDE, _HEIGHT["own"])
    left_boxes = _boxes(len(sources), 1, _SIDE, _HEIGHT["source"], height)
    right = _WIDTH - _TARGET - 1
    right_boxes = _boxes(len(view.targets), right, _TARGET, _HEIGHT["target"], height)
    return tag(
        "svg",
        *(_curve(box, own, "good") for box in left_boxes),
        *(
            _curve(own, box, "good" if target.is_ready else "bad")
            for target, box in zip(view.targets, right_boxes, strict=True)
        ),
        *(_source(source, box) for source, box in zip(sources, left_boxes, strict=True)),
        _own(view, own),
        *(
            _target(view, target, box, paths)
            for target, box in zip(view.targets, right_boxes, strict=True)
        ),
        viewBox=f"0 0 {_WIDTH} {height + 2:g}",
        class_="graph",
        role="group",
        aria_label=f"{len(view.sources)} sources, cluster {view.cluster}, "
        f"{len(view.targets)} targets",
    )


def _fitting(sources: tuple[SourceView, ...]) -> tuple[SourceView, ...]:
    if len(sources) <= _MAX_SOURCES:
        return sources

    rest = len(sources) - _MAX_SOURCES + 1
    return (*sources[: _MAX_SOURCES - 1], SourceView(f"{rest} more", ""))


def _column(count: int, height: float) -> float:
    return count * height + max(count - 1, 0) * _GAP


def _boxes(count: int, x: float, width: float, height: float, whole: float) -> list[_Box]:
    top = (whole - _column(count, height)) / 2 + 1
    return [_Box(x, top + i * (height + _GAP), width, height) for i in range(count)]


def _curve(start: _Box, end: _Box, tone: str) -> Markup:
    x1, x2 = start.x + start.width, end.x
    bend = (x1 + x2) / 2
    path = f"M{x1:g} {start.middle:g}C{bend:g} {start.middle:g} {bend:g} {end.middle:g} "
    arrow = f"M{x2 - 9:g} {end.middle - 5:g}l8 5l-8 5z"
    return tag(
        "g",
        tag("path", d=f"{path}{x2 - 7:g} {end.middle:g}", class_="edge", data_tone=tone),
        tag("path", d=arrow, class_="tip", data_tone=tone),
    )


def _outline(box: _Box, tone: str = "") -> Markup:
    return tag(
        "rect",
        x=f"{box.x:g}",
        y=f"{box.y:g}",
        width=f"{box.width:g}",
        height=f"{box.height:g}",
        rx="10",
        class_="box",
        data_tone=tone or None,
    )


def _text(x: float, y: float, text: str, class_: str, width: float = 0) -> Markup:
    """Write text, shortened to fit into `width` if that is given; hovering shows all of it."""
    most = int(width / _LETTER[class_]) if width else len(text)
    short = text if len(text) <= most else text[: max(most - 1, 1)] + "…"
    whole: Content = tag("title", text) if short != text else None
    return tag("text", short, whole, x=f"{x:g}", y=f"{y:g}", class_=class_)


def _source(source: SourceView, box: _Box) -> Markup:
    return tag(
        "g",
        _outline(box),
        _text(box.x + 16, box.y + 24, source.name, "name", box.width - 32),
        _text(box.x + 16, box.y + 43, source.subject or "sends pods", "faint", box.width - 16),
    )


def _own(view: ViewModel, box: _Box) -> Markup:
    waiting = sum(view.flow.total[stage] for stage in _WAITING)
    away = sum(view.flow.total[stage] for stage in _IN_TARGET)
    failing = view.flow.total[Stage.FAILING]
    counts = (f"{failing} failing, " if failing else "") + f"{waiting} waiting"
    return tag(
        "g",
        _outline(box, "own"),
        _text(box.x + 16, box.y + 29, view.cluster, "name", box.width - 32),
        _text(box.x + 16, box.y + 54, f"{_pods(away)} in targets", "plain"),
        _text(box.x + 16, box.y + 76, counts, "faint", box.width - 16),
    )


def _target(view: ViewModel, target: TargetView, box: _Box, paths: Paths) -> Markup:
    count = sum(view.flow.at(target.node, stage) for stage in _IN_TARGET)
    parts = [_pods(count)] if target.is_ready else [target.reason]
    if failing := view.flow.at(target.node, Stage.FAILING):
        parts.append(f"{failing} failing")

    if waiting := view.flow.at(target.node, Stage.CANDIDATE):
        parts.append(f"{waiting} asked")

    if target.is_cordoned:
        parts.append("cordoned")

    summary = ", ".join(parts)
    content = tag(
        "g",
        _outline(box),
        tag("circle", cx=f"{box.x + 21:g}", cy=f"{box.y + 25:g}", r="5", data_tone=target.tone),
        _text(box.x + 36, box.y + 30, target.name, "name", 150),
        _text(box.x + box.width - 16, box.y + 30, summary, "plain end", 150),
        *_gauges(target.use, box),
    )
    return tag(
        "a",
        content,
        href=paths.target(target.name),
        id=f"graph-{target.name}",
        aria_label=f"Target {target.name}: {summary}. Its page",
    )


def _pods(count: int) -> str:
    return f"{count} pod{'s' if count != 1 else ''}"


def _gauges(use: accounts.TargetUse | None, box: _Box) -> list[Markup]:
    if use is None:
        return [_text(box.x + 36, box.y + 66, "its capacity is not known", "faint")]

    return [
        part
        for row, (title, resource) in enumerate((("CPU", "cpu"), ("Memory", "memory")))
        for part in _gauge(box, box.y + 57 + row * 22, title, use, resource)
    ]


def _gauge(
    box: _Box, y: float, title: str, use: accounts.TargetUse, resource: str
) -> tuple[Markup, ...]:
    x, width = box.x + 88, box.width - 88 - 68
    part = accounts.fraction(use.requested, use.allocatable, resource)
    return (
        _text(box.x + 16, y + 4, title, "faint"),
        _bar(x, y - 4, width, "rail"),
        _bar(x, y - 4, width * min(part or 0.0, 1.0), "fill"),
        _text(
            box.x + box.width - 16,
            y + 4,
            accounts.share(use.requested, use.allocatable, resource),
            "faint end",
        ),
    )


def _bar(x: float, y: float, width: float, class_: str) -> Markup:
    return tag(
        "rect", x=f"{x:g}", y=f"{y:g}", width=f"{width:g}", height="8", rx="4", class_=class_
    )
