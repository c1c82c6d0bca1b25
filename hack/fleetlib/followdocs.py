"""Writes the table of docs/following.md about what names things of one cluster.

What stands between two markers is written, from `vnode.api.cluster_things`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vnode.api import cluster_things

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vnode.api.cluster_things import ClusterThing

PAGE = Path(__file__).resolve().parents[2] / "docs" / "following.md"
_BEGIN, _END = "<!-- table: hack/reference -->\n", "<!-- end of table -->\n"


def updated(page: str) -> str:
    """Return the page with its table updated."""
    head, _, rest = page.partition(_BEGIN)
    return head + _BEGIN + "\n" + "\n".join(_lines()) + "\n\n" + _END + rest.partition(_END)[2]


def _lines() -> Iterator[str]:
    yield "| Of | What | Fate | Why |"
    yield "|---|---|---|---|"
    for row in cluster_things.TABLE:
        yield f"| {row.of} | {row.what}{_named(row)} | {_fate(row)} | {row.why} |"


def _fate(row: ClusterThing) -> str:
    return f"{row.fate.value}, unless a Target says otherwise" if row.may_travel else row.fate.value


def _named(row: ClusterThing) -> str:
    """Return the annotations of a row; prefixes with an asterisk."""
    shown = [
        f"`{each}*`" if each.endswith(("/", "-", ".")) else f"`{each}`" for each in row.annotations
    ]
    return f": {', '.join(shown)}" if shown else ""
