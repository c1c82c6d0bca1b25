"""Formats rows as kubectl's tables, objects as JSON, YAML or names; defines the option for that.

Pure but for the colours.
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
from vnode.cli import terminal
from vnode.cli.cluster_options import Command

FORMATS: Final = ("table", "wide", "json", "yaml", "name")
_GAP: Final = 3  # spaces between columns, as kubectl has it
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
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="How to show it.",
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, and the cell of each row; `wide` columns are shown on request only.

    A cell that `is_bad` is red; the colour of others depends on their text.
    """

    title: str
    cell: Callable[[Any], str]
    wide: bool = False
    is_bad: Callable[[Any], bool] = lambda _row: False


def lines(
    columns: Sequence[Column],
    rows: Sequence[Any],
    *,
    wide: bool = False,
    heading: bool = True,
    widths: list[int] | None = None,
) -> list[str]:
    """Return the table's lines. `widths` has the columns of an earlier table, and is updated."""
    shown = [column for column in columns if wide or not column.wide]
    cells = [
        [(visible.line(column.cell(row)) or "<none>", column.is_bad(row)) for column in shown]
        for row in rows
    ]
    if heading:
        cells.insert(0, [(column.title, False) for column in shown])

    widths = [] if widths is None else widths
    widths += [0] * (len(shown) - len(widths))
    for row in cells:
        widths[:] = [max(width, len(cell)) for width, (cell, _bad) in zip(widths, row, strict=True)]

    return [_line(row, widths, plain=heading and not i) for i, row in enumerate(cells)]


def _line(row: list[tuple[str, bool]], widths: Sequence[int], *, plain: bool) -> str:
    last = len(row) - 1
    return "".join(
        (cell if plain else terminal.styled(cell, terminal.BAD if is_bad else _COLOURS.get(cell)))
        + (" " * (width - len(cell) + _GAP) if i < last else "")
        for i, ((cell, is_bad), width) in enumerate(zip(row, widths, strict=True))
    ).rstrip()


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
