"""Applies RFC 6902 operations to a pod, which is the caller's own copy. Pure.

Two things differ from the RFC. API servers drop empty maps and lists, so that nobody can know
whether a parent is there: `add`, `copy` and `move` make parents that are missing. And who writes a
policy must not be able to stall the agent: what is copied is bounded in size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vnode.api import documents
from vnode.api.errors import ConfigError

APPEND: Final = "-"
"""The index behind the last element of a list."""

_COPIED: Final = 256 * 1024  # bytes of JSON that the operations of one patch may copy
_SHOWN: Final = 60  # characters of a value in a message
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)

Pointer = tuple[str, ...]
"""A JSON pointer (RFC 6901) as its tokens."""


class Operation(NamedTuple):
    """One operation; `origin` is the pointer `from` of `copy` and `move`."""

    op: str
    path: Pointer
    value: Any = None
    origin: Pointer = ()


def pointer(text: str) -> Pointer:
    """Parse a JSON pointer; ConfigError if it is none."""
    if text and not text.startswith("/"):
        raise ConfigError(f'"{text[:_SHOWN]}" is no JSON pointer: begin with "/"')

    if _BAD_ESCAPE.search(text):
        raise ConfigError(
            f'"{text[:_SHOWN]}" is no JSON pointer: write "~0" for "~" and "~1" for "/"'
        )

    return tuple(each.replace("~1", "/").replace("~0", "~") for each in text.split("/")[1:])


def text_of(path: Sequence[str]) -> str:
    """Return the text of a JSON pointer."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in path)


def apply(document: Any, operations: Iterable[Operation]) -> None:
    """Apply operations in order, in place; ConfigError says which fails and why.

    After a failure the document is half changed: drop it.
    """
    copied = 0
    for number, each in enumerate(operations):
        try:
            match each.op:
                case "add":
                    _add(document, each.path, _clone(each.value)[0])
                case "replace":
                    _remove(document, each.path)
                    _add(document, each.path, _clone(each.value)[0])
                case "remove":
                    _remove(document, each.path)
                case "test":
                    _test(document, each.path, each.value)
                case "copy":
                    value, size = _clone(_find(document, each.origin))
                    copied += size
                    if copied > _COPIED:
                        raise ConfigError(f"more than {_COPIED} bytes are copied")

                    _add(document, each.path, value)
                case "move":
                    _move(document, each)
                case _:
                    raise ConfigError(f'"{each.op[:_SHOWN]}" is no operation of RFC 6902')
        except ConfigError as error:
            path = text_of(each.path)[: 4 * _SHOWN]
            raise ConfigError(f"patches[{number}] ({each.op} {path}): {error}") from error


def equal(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal: numbers by value, and no boolean is a number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right

    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)

    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))

    return bool(left == right)


def _clone(value: Any) -> tuple[Any, int]:
    """Return a deep copy, and its size."""
    try:
        payload = msgspec.json.encode(value)
        return msgspec.json.decode(payload), len(payload)
    except documents.NO_JSON as error:
        raise ConfigError("the value is nested too deeply") from error


def _add(document: Any, path: Pointer, value: Any) -> None:
    """Put a value where a path leads, unless that makes the document deeper than one may be.

    Each operation may add its path's length, and what reads a pod goes down its levels.
    """
    if len(path) + documents.depth_of(value) > documents.DEPTH:
        raise ConfigError(f"the pod would be nested more than {documents.DEPTH} levels deep")

    parent = document
    for depth, token in enumerate(path[:-1]):
        parent = _child(parent, token, makes=path[depth + 1])

    last = path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        index = len(parent) if last == APPEND else _index(last, len(parent))
        parent.insert(index, value)
    else:
        raise ConfigError(f"what is above it is {_shown(parent)}, which has no parts")


def _child(parent: Any, token: str, *, makes: str) -> Any:
    """Return the part of that name; a missing one is made for what it is to hold."""
    if isinstance(parent, dict):
        if parent.get(token) is None:
            parent[token] = [] if makes in (APPEND, "0") else {}

        return parent[token]

    if isinstance(parent, list) and token == APPEND:
        parent.append([] if makes in (APPEND, "0") else {})
        return parent[-1]

    return _part(parent, token)


def _part(parent: Any, token: str) -> Any:
    if isinstance(parent, dict):
        if token not in parent:
            raise ConfigError(f'there is no "{token[:_SHOWN]}"')

        return parent[token]

    if isinstance(parent, list):
        return parent[_index(token, len(parent) - 1)]

    raise ConfigError(f'there is no "{token[:_SHOWN]}" in {_shown(parent)}')


def _index(token: str, most: int) -> int:
    if not _INDEX.fullmatch(token):
        raise ConfigError(f'"{token[:_SHOWN]}" is no index of a list')

    if int(token) > most:
        raise ConfigError(f"the list has no element {token}")

    return int(token)


def _find(document: Any, path: Pointer) -> Any:
    found = document
    for token in path:
        found = _part(found, token)

    return found


def _remove(document: Any, path: Pointer) -> Any:
    parent, last = _find(document, path[:-1]), path[-1]
    value = _part(parent, last)
    if isinstance(parent, dict):
        del parent[last]
    else:
        del parent[int(last)]

    return value


def _test(document: Any, path: Pointer, wanted: Any) -> None:
    found = _find(document, path)
    if not equal(found, wanted):
        raise ConfigError(f"the pod has {_shown(found)}, not {_shown(wanted)}")


def _move(document: Any, operation: Operation) -> None:
    if operation.path == operation.origin:
        _find(document, operation.origin)
        return

    if operation.path[: len(operation.origin)] == operation.origin:
        raise ConfigError("a value cannot move into itself")

    _add(document, operation.path, _remove(document, operation.origin))


def _shown(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except documents.NO_JSON:
        text = "a value"

    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
