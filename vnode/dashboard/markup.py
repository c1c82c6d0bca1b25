"""Makes HTML and SVG by nested calls. Pure.

All text from clusters is treated as hostile: a string, wherever it stands, is escaped. Only what
`tag` and `join` return passes as markup, and no string can be turned into markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from vnode.api import visible

MAX_LENGTH: Final = 2000
"""The number of characters that are shown of one text."""

_VOID: Final = frozenset({"meta", "link", "input", "rect", "path", "circle"})
_SVG: Final = frozenset({"rect", "path", "circle"})
_NAME: Final = re.compile(r"[a-z][a-zA-Z0-9-]*")


class Markup:
    """Safe HTML, which `str()` returns; made by `tag` and `join` only."""

    __slots__ = ("_html",)

    def __init__(self) -> None:
        self._html = ""

    def __str__(self) -> str:
        return self._html


Content: TypeAlias = str | Markup | None
"""Text, which is escaped; markup; or nothing."""


def shown(text: str) -> str:
    """Escape text for HTML, cut at `MAX_LENGTH`, with invisible characters replaced."""
    if len(text) > MAX_LENGTH:
        text = text[:MAX_LENGTH] + "…"

    return html.escape(visible.text(text))


def tag(name: str, /, *children: Content, **attributes: str | bool | None) -> Markup:
    """Make an element. In attribute names, `_` becomes `-`, and a trailing one is dropped.

    True is an attribute without value; False and None are left out. `style` and event handlers are
    refused, since the page's policy would block them.
    """
    assert _NAME.fullmatch(name), f"{name} is not the name of an element"
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    made = Markup()
    if name in _VOID:
        assert not children, f"{name} has no content"
        made._html = f"<{name}{written}>" if name not in _SVG else f"<{name}{written}/>"
    else:
        made._html = f"<{name}{written}>{_inside(children)}</{name}>"

    return made


def join(children: Iterable[Content]) -> Markup:
    """Join texts and markup."""
    made = Markup()
    made._html = _inside(children)
    return made


def document(*children: Content, **attributes: str | bool | None) -> bytes:
    """Make a whole HTML document."""
    return f"<!doctype html>\n{tag('html', *children, **attributes)}\n".encode()


def _inside(children: Iterable[Content]) -> str:
    return "".join(
        child._html if isinstance(child, Markup) else shown(child)
        for child in children
        if child is not None
    )


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""

    name = key.rstrip("_").replace("_", "-")
    assert _NAME.fullmatch(name), f"{name} is not the name of an attribute"
    assert name != "style", "style attributes are against the policy"
    assert not name.startswith("on"), "handlers are against the policy"
    return f" {name}" if value is True else f' {name}="{shown(value)}"'
