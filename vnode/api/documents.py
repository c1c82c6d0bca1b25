"""Parses YAML and JSON that users put into annotations and Secrets, and YAML of our own.

Anybody who may create a pod, or a Secret, writes the former, so that they must not be able to stall
the agent: aliases (which let a few lines stand for gigabytes), deep nesting and thousands of
elements (which YAML takes a second to read) are refused before anything is built.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec
import yaml

from vnode.api.errors import ConfigError

NO_JSON: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
"""Errors of msgspec for a text that is no JSON, not UTF-8, or nested without end."""

NOTE: Final = 32 * 1024
"""Characters of an annotation that is a note of ours."""
_Form = TypeVar("_Form")

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A string of JSON, or what is left of one: it takes linear time whatever the text is."""

DEPTH: Final = 64  # levels; a PodSpec needs a dozen
EVENTS: Final = 10_000  # of YAML; a quarter of a second, and a large pod has a thousand
_LoaderClass = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TOO_DEEP: Final = f"it is nested more than {DEPTH} levels deep"
_OPENING: Final = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING: Final = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def depth_of(value: Any) -> int:
    """Return how many levels of maps and lists a value has; 0 for one that is neither.

    It does not recurse, and gives up soon after the depth that documents may have.
    """
    depth, level = 0, [value]
    while depth <= DEPTH:
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            break

        depth += 1
        level = [
            inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
        ]

    return depth


def decode(text: str | bytes) -> Any:
    """Return a JSON value that somebody else wrote; one of NO_JSON if it is none.

    One that is nested deeper than DEPTH raises RecursionError, as what walks it might.
    """
    value = msgspec.json.decode(text)
    if _brackets(text) > DEPTH and depth_of(value) > DEPTH:
        raise RecursionError(_TOO_DEEP)

    return value


def _brackets(text: str | bytes) -> int:
    """Count what may open a level: mostly fewer than may be, which spares a walk."""
    if isinstance(text, bytes):
        return text.count(b"{") + text.count(b"[")

    return text.count("{") + text.count("[")


def read_note(text: object, form: type[_Form]) -> _Form | None:
    """Return what vnode has noted in an annotation, which others can write, too; None if nothing.

    A note that cannot be read, or is far too long, counts as none.
    """
    if not isinstance(text, str) or len(text) > NOTE:
        return None

    try:
        return msgspec.json.decode(text, type=form)
    except NO_JSON:
        return None


def has_at_most(values: int, payload: bytes) -> bool:
    """Tell whether JSON has no more values than that, without building them.

    Two bytes can take 200 in memory, and decoding takes its time for each value.
    """
    if _values(payload) <= values:
        return True

    # A value has two strings at most, its key and itself. This counts too few quotes, as some that
    # follow a backslash are none of a text. It spares the slower look at each string.
    if payload.count(b'"') - payload.count(b'\\"') > 4 * values:
        return False

    return _values(_STRING.sub(b"", payload)) <= values


def _values(payload: bytes) -> int:
    """Return how many values there are at most. It counts what is in strings, too."""
    return 1 + payload.count(b",") + payload.count(b"{") + payload.count(b"[")


def parse(text: str, *, events: int = EVENTS) -> Any:
    """Return the JSON value of a JSON or YAML text of so many elements; None for an empty one.

    Raises ConfigError, which says what is wrong without naming where the text came from.
    """
    try:
        return decode(text)
    except NO_JSON:
        return _parse_yaml(text, events)


def _parse_yaml(text: str, events: int) -> Any:
    try:
        _refuse_unbounded(text, events)
        value = yaml.load(text, Loader=_LoaderClass)  # noqa: S506 - a SafeLoader, in C if possible
        return msgspec.json.decode(msgspec.json.encode(value))
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in str(error.problem):  # libyaml, since PyYAML 6.0.4, reads ahead of us
            raise ConfigError(_TOO_DEEP) from error

        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"it is not YAML: {error.problem or error.context}{where}") from error
    except (yaml.YAMLError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigError("it is not YAML that could be written as JSON") from error


def _refuse_unbounded(text: str, events: int) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_LoaderClass)):
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError("it has YAML aliases (*name): write them out")

        depth += isinstance(event, _OPENING)
        depth -= isinstance(event, _CLOSING)
        if depth > DEPTH:
            raise ConfigError(_TOO_DEEP)

        if number > events:
            raise ConfigError(f"it has more than {events} elements of YAML: write it in JSON")


def load_all(text: str) -> list[Any]:
    """Return the documents of a YAML text of our own, without those that are empty.

    It sets no limits: `parse` is for what others wrote. With the C parser all CRDs take 0.02 s,
    a dozen times less than with the parser that PyYAML uses by default.
    """
    return [document for document in yaml.load_all(text, Loader=_LoaderClass) if document]
