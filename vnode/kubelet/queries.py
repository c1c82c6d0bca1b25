"""Translates the query of a kubelet request for the subresource of the API server's pods.

The two differ: a kubelet takes the container from the path and `input=1`, an API server takes
`container=` and `stdin=true`. What a kubelet would refuse is refused here, with the same codes and
messages. What is long is bounded first, and not parsed: a command may have a MiB.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from vnode.kubelet.refusal import Refused

Query = Sequence[tuple[str, str]]
"""Parameters in order; a name may be repeated."""

MOST: Final = 10_000
"""Parameters of a request, and arguments of a command."""

_STREAMS: Final = (("input", "stdin"), ("output", "stdout"), ("error", "stderr"), ("tty", "tty"))
_FALSE: Final = ("false", "0")
_ESCAPED: Final = re.compile(r"[!-~]*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_BOOLEANS: Final = ("follow", "previous", "timestamps")
_MINIMA: Final = {"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}
_LOG_STREAMS: Final = ("All", "Stdout", "Stderr")
_UNDECODABLE: Final = '{"message": "Unable to decode query."}'
_INVALID: Final = '{"message": "Invalid request."}'
_INT64: Final = 2**63


def logs(query: Query, container: str) -> list[tuple[str, str]]:
    """Return the options for `pods/log`.

    Raises Refused: 400 for an invalid number or time, 422 for options that exclude each other or
    are out of range.
    """
    given: dict[str, str] = {}
    for name, value in query:
        given.setdefault(name, value)

    _translate_tail(given)
    options = [("container", container)]
    options += [
        (name, "true") for name in _BOOLEANS if name in given and given[name].lower() not in _FALSE
    ]
    options += _numbers(given)
    if moment := given.get("sinceTime"):
        if "sinceSeconds" in given:
            raise Refused(422, _INVALID)

        options.append(("sinceTime", _time(moment)))

    return options + _stream(given)


def _translate_tail(given: dict[str, str]) -> None:
    """Replace `tail` of old clients, a number or "all" for no limit, by `tailLines`."""
    if tail := given.pop("tail", ""):
        given["tailLines"] = tail
        if tail == "all":
            del given["tailLines"]


def _numbers(given: dict[str, str]) -> list[tuple[str, str]]:
    numbers = []
    for name, least in _MINIMA.items():
        if name in given:
            number = _integer(given[name])
            if number < least:
                raise Refused(422, _INVALID)

            numbers.append((name, str(number)))

    return numbers


def _stream(given: dict[str, str]) -> list[tuple[str, str]]:
    stream = given.get("stream")
    if stream is None:
        return []

    if stream not in _LOG_STREAMS or (stream != "All" and "tailLines" in given):
        raise Refused(422, _INVALID)

    return [("stream", stream)]


def _integer(text: str) -> int:
    number = int(text) if _INTEGER.fullmatch(text) else _INT64
    if not -_INT64 <= number < _INT64:
        raise Refused(400, _UNDECODABLE)

    return number


def _time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None

    if moment is None or moment.tzinfo is None:
        raise Refused(400, _UNDECODABLE)

    return text


def check_size(raw: str) -> None:
    """Raise Refused (400) for a query of more parameters than are read, before it is parsed."""
    _bound_count(raw.count("&") + 1, "parameters")


def split_command(text: str) -> list[str]:
    """Return the arguments of a command in one text, as for `run`; Refused (400) for too many."""
    _bound_count(text.count(" ") + 1, "arguments")
    return text.split(" ")


def _bound_count(count: int, what: str) -> None:
    if count > MOST:
        # The API server shows users the text of a 400, and not that of a 414.
        raise Refused(400, f"the request has {count} {what}: at most {MOST} are taken")


def attach(raw: str, container: str) -> str:
    """Return the query for `pods/attach`; Refused (400) if no stream is requested."""
    return urlencode(_streams(raw.split("&"), container))


def _streams(parameters: Collection[str], container: str) -> list[tuple[str, str]]:
    requested = {local for local, _remote in _STREAMS if f"{local}=1" in parameters}
    if {"tty", "error"} <= requested:
        requested.discard("error")  # a terminal has one output

    if not requested & {"input", "output", "error"}:
        raise Refused(400, "you must specify at least 1 of stdin, stdout, stderr")

    streams = [(remote, "true" if local in requested else "false") for local, remote in _STREAMS]
    return [("container", container), *streams]


def execute(raw: str, container: str) -> str:
    """Return the query for `pods/exec`: stream options, and the arguments of the command.

    These stay escaped as they are. A MiB takes long to escape anew, and need not be text.
    """
    parameters = raw.split("&")
    streams = urlencode(_streams(parameters, container))
    return "&".join([streams, *_values(parameters, "command", "command")])


def command_length(query: str) -> int:
    """Count the bytes of the arguments in a query for `pods/exec`."""
    command = [each for each in query.split("&") if each.startswith("command=")]
    return sum(len(each) - len("command=") - 2 * each.count("%") for each in command)


def port_forward(raw: str) -> str:
    """Return the ports for `pods/portforward`: only WebSocket clients name them in advance."""
    return "&".join(_values(raw.split("&"), "port", "ports"))


def _values(parameters: Iterable[str], name: str, target_name: str) -> list[str]:
    """Return the parameters of a name under the one that they have in a target."""
    prefix = f"{name}="
    values = [each.removeprefix(prefix) for each in parameters if each.startswith(prefix)]
    if not all(_ESCAPED.fullmatch(value) for value in values):  # or they end a request's line
        raise Refused(400, _UNDECODABLE)

    return [f"{target_name}={value}" for value in values]
