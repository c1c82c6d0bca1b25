"""Tells each source what its own pods take of a target, apart from what all others take. Pure.

What a target has in all, less what others use, is what its virtual node can offer. A source could
compute that by itself only of reports and pods of different moments: each pod that comes or goes
would change it for a while. So the target says in one report what is free and what each source has.

    {"sources": {"3f2a9c51d04b7e86": {"cpu": "3", "pods": "4"}}, "complete": true}

Sources are not to know of each other: each finds itself by a digest of its UID.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping
from typing import Final

import msgspec

from vnode.api import documents, resources
from vnode.api.errors import ConfigError
from vnode.api.resources import Resources

MOST_SOURCES: Final = 64
LIMIT: Final = 32 * 1024
"""Characters of the annotation, which comes from another cluster."""


class _Text(msgspec.Struct):
    sources: dict[str, dict[str, str]]
    complete: bool


def digest(uid: str) -> str:
    """Return what a source is called there."""
    return hashlib.sha256(uid.encode()).hexdigest()[:16]


def encode(used: Mapping[str, Mapping[str, int]]) -> str:
    """Return the text for what sources use, by their UIDs: those with the most pods, as many as
    there may be.

    Any pod may make up a source, and those of others must not have to give way to it.
    """
    first = heapq.nsmallest(
        MOST_SOURCES, used, key=lambda uid: (-used[uid].get(resources.PODS, 0), uid)
    )
    listed: dict[str, dict[str, str]] = {}
    left = LIMIT - len(_encoded({}, complete=False))
    for uid in first:
        name, amounts = digest(uid), resources.format_list(used[uid])
        size = len(msgspec.json.encode({name: amounts}))
        if size <= left:
            left -= size
            listed[name] = amounts

    return _encoded(listed, complete=len(listed) == len(used))


def _encoded(listed: dict[str, dict[str, str]], *, complete: bool) -> str:
    return msgspec.json.encode(_Text(listed, complete=complete), order="sorted").decode()


def decode(text: object, uid: str) -> Resources | None:
    """Return what the source of that UID uses; None if the text does not say."""
    if not isinstance(text, str) or len(text) > LIMIT:
        return None

    try:
        read = msgspec.json.decode(text, type=_Text)
        amounts = read.sources.get(digest(uid))
        if amounts is None:
            return {} if read.complete else None

        return resources.parse(amounts)
    except (*documents.NO_JSON, ConfigError):
        return None
