"""Has objects of which thousands are kept share their short strings.

JSON has names of images, times and the like again in each object, and each copy takes 60 bytes and
more: a third of what is kept of a pod. The strings are shared by a dict and not by `sys.intern`,
since anybody may write new ones without end: whenever it has many, it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from vnode.api import keys
from vnode.api.objects import Object

SHORT: Final = 64  # characters; longer ones are rarely equal
MOST: Final = 20_000
"""Strings that are known at a time, some 2 MiB. To forget them costs little: the next objects share
others among them."""

BUDGET: Final = 5000
"""Values of an object that are looked at, a fraction of a millisecond: a pod has 1,000, and a
server that need not be honest may send 200,000 of them."""

_OWN: Final = frozenset(
    {
        *("name", "uid", "resourceVersion", "containerID", "podIP", "ip"),
        *(keys.PARENT_UID, keys.PARENT_NAME),
    }
)
"""Fields in which each object has a value of its own, which would only fill the dict."""

_known: Final = dict[str, str]()


def sharing(trim: Callable[[Object], Object]) -> Callable[[Object], Object]:
    """Wrap a trim function so that what it returns shares its strings with earlier objects."""

    def trim_and_share(obj: Object) -> Object:
        trimmed = trim(obj)
        _share(trimmed)
        return trimmed

    return trim_and_share


def _share(obj: Object) -> None:
    """Replace strings by equal ones, in place, until the budget is spent."""
    if len(_known) >= MOST:
        _known.clear()

    left, waiting = BUDGET, list[Any]([obj])
    while waiting:
        values = waiting.pop()
        left -= len(values)
        if left < 0:
            return

        for key, value in _entries(values):
            kind = type(value)
            if kind is str:
                if len(value) < SHORT and key not in _OWN:
                    values[key] = _known.setdefault(value, value)
            elif kind is dict or kind is list:
                waiting.append(value)


def _entries(values: Any) -> Iterable[tuple[Any, Any]]:
    return values.items() if type(values) is dict else enumerate(values)
