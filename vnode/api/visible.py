"""Makes text from clusters safe to print: without characters that nobody sees but terminals obey.

Pure. Each place that shows text of others passes it through here: the dashboard, the commands, log
lines for people, and what the agent writes into conditions and Events.
"""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = "\ufffd"

_HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but for tab and newline
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # no width, other lines, other directions
    "\ud800-\udfff"  # surrogates, which cannot be encoded
)
_INVISIBLE: Final = re.compile(f"[{_HIDDEN}]")
_BREAKS: Final = re.compile(r"[\t\r\n]+")


def text(words: str) -> str:
    """Replace each invisible character; tabs and newlines stay."""
    return words if words.isascii() and words.isprintable() else _INVISIBLE.sub(REPLACEMENT, words)


def line(words: str) -> str:
    """Return one line: invisible characters are replaced, and each line break is a space."""
    return text(_BREAKS.sub(" ", words))


def escaped(document: str) -> str:
    r"""Write each invisible character in a JSON document as JSON does, such as `\u202e`."""
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def is_visible(words: str) -> bool:
    """Tell whether `text` would replace no character."""
    return _INVISIBLE.search(words) is None
