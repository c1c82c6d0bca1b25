"""Makes a table as narrow as a terminal: columns that say nothing go, then texts are shortened.

Pipes and files, and `-o wide`, get every word: for them nothing here is called but `natural`. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

NOTHING: Final = frozenset({"<none>", "<unknown>"})
"""Cells that say nothing."""

_GAP: Final = 3  # spaces between columns, as kubectl has it
_NARROW_GAP: Final = 2
_LEAST: Final = 6  # characters to which a text is shortened
_ELLIPSIS: Final = "…"


@dataclass(slots=True)
class TableLayout:
    """How wide a table's columns are, for rows that a watch adds to it later.

    A table that is `followed` keeps columns in which no row says anything yet.
    """

    followed: bool = False
    widths: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """The texts of one column; those that name the row's object are shortened last."""

    title: str
    cells: Sequence[str]
    short: str = ""
    """The title where there is little room."""
    names_row: bool = False
    least: int = 0
    """How wide it is in the rows above, which are printed already."""

    @property
    def says_nothing(self) -> bool:
        """Whether no row has anything in it."""
        return all(cell in NOTHING for cell in self.cells)

    @property
    def content(self) -> int:
        """How wide it has to be for its cells."""
        return max([*map(len, self.cells), self.least])


@dataclass(frozen=True, slots=True)
class FittedTable:
    """The numbers of the columns to show, with their titles and widths."""

    numbers: tuple[int, ...]
    titles: tuple[str, ...]
    widths: tuple[int, ...]
    gap: int = _GAP

    @property
    def width(self) -> int:
        """How many columns of a terminal it takes."""
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


def natural(columns: Sequence[ShownColumn]) -> FittedTable:
    """Return the table with columns as wide as their widest text."""
    return _measured(dict(enumerate(columns)))


def fit(columns: Sequence[ShownColumn], limit: int, *, drops: bool = True) -> FittedTable:
    """Return the table for a terminal of `limit` columns; where it is very narrow, lines wrap.

    First, columns that say nothing go, the last one first; then titles are the short ones, and the
    gap is narrower; last, the longest texts are shortened.
    """
    shown = dict(enumerate(columns))
    for number, column in reversed(list(shown.items())):
        if drops and column.says_nothing and _measured(shown).width > limit:
            del shown[number]

    found = _measured(shown)
    if found.width > limit:
        found = _measured(shown, is_narrow=True)

    texts = list(shown.values())
    for keeps in (_whole_cells, _whole_names, _some_of_each):
        least = [
            min(width, keeps(each, width)) for each, width in zip(texts, found.widths, strict=True)
        ]
        widths = _shortened(found.widths, least, found.width - limit)
        found = FittedTable(found.numbers, found.titles, widths, found.gap)

    return found


def cut(text: str, width: int) -> str:
    """Return the text, or as much of it as fits, with an ellipsis."""
    return text if len(text) <= width else text[: width - 1] + _ELLIPSIS


def _whole_cells(column: ShownColumn, _width: int) -> int:
    return max(column.content, _LEAST)


def _whole_names(column: ShownColumn, width: int) -> int:
    return width if column.names_row else _LEAST


def _some_of_each(_column: ShownColumn, _width: int) -> int:
    return _LEAST


def _measured(shown: dict[int, ShownColumn], *, is_narrow: bool = False) -> FittedTable:
    titles = [each.short if is_narrow and each.short else each.title for each in shown.values()]
    widths = [
        max(len(title), each.content) for title, each in zip(titles, shown.values(), strict=True)
    ]
    return FittedTable(
        tuple(shown), tuple(titles), tuple(widths), _NARROW_GAP if is_narrow else _GAP
    )


def _shortened(widths: Sequence[int], least: Sequence[int], excess: int) -> tuple[int, ...]:
    """Take `excess` from the widest columns, so that these become equally wide."""
    found = list(widths)
    while excess > 0:
        longer = [number for number, width in enumerate(found) if width > least[number]]
        if not longer:
            break

        found[max(longer, key=found.__getitem__)] -= 1
        excess -= 1

    return tuple(found)
