"""Keeps once what a proxy and its chaperon say alike: most of a status, and the containers.

A source holds both objects of each of its pods for as long as the pod runs, and half of both is the
same text, which two API servers have sent. Nobody changes stored objects, so that one value can
stand in both. Of a pod with one container that saves 4 KB of 15.
"""

from __future__ import annotations

from typing import Any, Final

from vnode.api.objects import Object

_FIELDS: Final = ("spec", "status")
_MOST: Final = 16
"""Entries of a list that are compared with each other; a pod with more conditions is not usual."""


def share(proxy: Object, chaperon: Object) -> None:
    """Put values of a stored chaperon in place of equal ones of its stored proxy."""
    for field in _FIELDS:
        mine, theirs = proxy.get(field), chaperon.get(field)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            for key in mine.keys() & theirs.keys():
                mine[key] = _shared(mine[key], theirs[key])


def _shared(mine: Any, theirs: Any) -> Any:
    if mine is theirs or mine == theirs:
        return theirs if type(mine) is type(theirs) else mine

    if isinstance(mine, list) and isinstance(theirs, list) and max(len(mine), len(theirs)) <= _MOST:
        for number, entry in enumerate(mine):
            mine[number] = next((each for each in theirs if each == entry), entry)

    return mine
