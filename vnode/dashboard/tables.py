"""Builds tables that a narrow screen shows as cards, one for each row. Pure.

Each cell has its column's title with it, for the card, and its role: a browser may take a table
whose display is changed by the style sheet for no table any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vnode.dashboard.markup import Content, Markup, tag


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column. `names_row` is that of the row's heading, and `meaning` a line about the title."""

    title: str
    is_number: bool = False
    names_row: bool = False
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class PageCell:
    """A cell; one that is `absent` (zero, not known) is left out of cards."""

    content: Content
    tone: str | None = None
    hint: str | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row, with a cell for each column; `style` is a class of the style sheet."""

    cells: Sequence[PageCell | Content]
    style: str | None = None


def build(
    columns: Sequence[PageColumn], rows: Iterable[PageRow], style: str | None = None
) -> Markup:
    """Build a table in a block that scrolls by itself if it is too wide."""
    table = tag(
        "table",
        tag("thead", tag("tr", *map(_head, columns), role="row"), role="rowgroup"),
        tag("tbody", *(_row(columns, row) for row in rows), role="rowgroup"),
        class_=style,
        role="table",
    )
    return tag("div", table, class_="wide")


def _head(column: PageColumn) -> Markup:
    title: Content = column.title
    if column.meaning:
        title = tag("span", column.title, title=column.meaning)

    style = "number" if column.is_number else None
    return tag("th", title, scope="col", role="columnheader", class_=style)


def _row(columns: Sequence[PageColumn], row: PageRow) -> Markup:
    cells = (
        _cell(column, each if isinstance(each, PageCell) else PageCell(each))
        for column, each in zip(columns, row.cells, strict=True)
    )
    return tag("tr", *cells, class_=row.style, role="row")


def _cell(column: PageColumn, cell: PageCell) -> Markup:
    if column.names_row:
        return tag("th", cell.content, scope="row", role="rowheader", title=cell.hint)

    styles = ("number" if column.is_number else "", "none" if cell.absent else "")
    return tag(
        "td",
        cell.content,
        class_=" ".join(filter(None, styles)) or None,
        role="cell",
        title=cell.hint,
        data_label=column.title,
        data_tone=cell.tone,
    )
