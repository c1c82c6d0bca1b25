"""Formats rows as kubectl's tables, objects as JSON, YAML or names; defines the option for that.

Pure but for the colours, and the width of the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import yaml

from vnode.api import kinds, objects, visible
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import fitting, terminal
from vnode.cli.cluster_options import Command
from vnode.cli.fitting import FittedTable, ShownColumn, TableLayout
from vnode.cli.suggestions import OneOf

FORMATS: Final = ("table", "wide", "json", "yaml", "name")
_COLOURS: Final = {
    "Ready": terminal.GOOD,
    "True": terminal.GOOD,
    "Running": terminal.GOOD,
    "False": terminal.BAD,
    "NotReady": terminal.BAD,
    "Failed": terminal.BAD,
    "Pending": terminal.DOUBTFUL,
    "Unknown": terminal.DOUBTFUL,
    "Terminating": terminal.DOUBTFUL,
}


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Return the option `-o`, which takes one of these formats; the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=OneOf(formats),
        default=formats[0],
        show_default=True,
        help="How to show it.",
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, and the cell of each row; `wide` columns are shown on request only.

    A cell that `is_bad` is red; the colour of others depends on their text. Of a table that is
    wider than the terminal, the titles are the `short` ones, and what `names_row` stays longest.
    """

    title: str
    cell: Callable[[Any], str]
    wide: bool = False
    is_bad: Callable[[Any], bool] = lambda _row: False
    short: str = ""
    names_row: bool = False


def lines(
    columns: Sequence[Column],
    rows: Sequence[Any],
    *,
    wide: bool = False,
    heading: bool = True,
    layout: TableLayout | None = None,
) -> list[str]:
    """Return the table's lines, which fit the terminal if they go to one, unless it is `wide`.

    `layout` has the columns of the rows above, if there are some, and is updated.
    """
    layout = layout or TableLayout()
    shown = [column for column in columns if wide or not column.wide]
    cells = [[visible.line(column.cell(row)) or "<none>" for column in shown] for row in rows]
    least = layout.widths or [0] * len(shown)
    texts = [
        ShownColumn(
            column.title if heading else "",
            [row[number] for row in cells],
            column.short if heading else "",
            column.names_row,
            least[number],
        )
        for number, column in enumerate(shown)
    ]
    limit = None if wide else terminal.width()
    table = fitting.natural(texts)
    if limit is not None:
        table = fitting.fit(texts, limit, drops=not layout.followed)

    layout.widths = list(table.widths)
    found = [_line(table.titles, table)] if heading else []
    for row, line in zip(rows, cells, strict=True):
        colours = [_colour(shown[number], row, line[number]) for number in table.numbers]
        found.append(_line([line[number] for number in table.numbers], table, colours))

    return found


def _colour(column: Column, row: Any, cell: str) -> str | None:
    return terminal.BAD if column.is_bad(row) else _COLOURS.get(cell)


def _line(
    texts: Sequence[str], table: FittedTable, colours: Sequence[str | None] | None = None
) -> str:
    parts = []
    for number, (text, width) in enumerate(zip(texts, table.widths, strict=True)):
        shown = fitting.cut(text, width)
        fill = "" if number == len(texts) - 1 else " " * (width - len(shown) + table.gap)
        parts.append((terminal.styled(shown, colours[number]) if colours else shown) + fill)

    return "".join(parts).rstrip()


def document(objs: Objects, format_: str, *, single: bool = False) -> str:
    """Serialize the objects as JSON or YAML: a single one as itself, several as a List."""
    whole: Object = objs[0] if single else {"apiVersion": "v1", "kind": "List", "items": objs}
    if format_ == "json":
        return visible.escaped(json.dumps(whole, indent=4, ensure_ascii=False))

    text: str = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=100)
    if not visible.is_visible(text):  # then all but ASCII is escaped
        text = yaml.safe_dump(whole, sort_keys=False, width=100)

    return text.rstrip("\n")


def reference(kind: Kind, obj: Object) -> str:
    """Return `node/NAME`, or `target.multicluster.admiralty.io/NAME`, which kubectl accepts."""
    group = f".{kind.group}" if kind.group else ""
    return f"{kind.kind.lower()}{group}/{objects.name(obj)}"


def typed(kind: Kind, obj: Object) -> Object:
    """Add the kind to an object, since items of a list lack it, and remove managed fields."""
    metadata = {k: v for k, v in objects.metadata(obj).items() if k != "managedFields"}
    rest = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **rest}


def target_kind(obj: Object) -> Kind:
    """Return Target or ClusterTarget: the former if the object has a namespace."""
    return kinds.scoped(kinds.TARGETS, objects.namespace(obj))


def source_kind(obj: Object) -> Kind:
    """Return Source or ClusterSource: the former if the object has a namespace."""
    return kinds.scoped(kinds.SOURCES, objects.namespace(obj))
