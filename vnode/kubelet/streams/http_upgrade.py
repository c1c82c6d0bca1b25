"""Writes and parses the HTTP/1.1 of an upgrade, as bytes: the request and its answer.

The protocol after the answer 101 (SPDY/3.1, WebSocket) does not matter here: the two ends negotiate
it in headers, which are passed on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api import numbers
from vnode.kubelet.refusal import Refused

HEAD_LIMIT: Final = 64 * 1024  # bytes of an answer's head
BODY_LIMIT: Final = 64 * 1024  # bytes of a refusal that are read; a Status has fewer
END: Final = b"\r\n\r\n"

Headers = Iterable[tuple[str, str]]

_PASSED_ON: Final = ("upgrade", "x-stream-protocol-version", "sec-websocket-")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f]")
_PASSED_BACK: Final = (*_PASSED_ON, "x-accepted-stream-protocol-versions")


@dataclass(frozen=True, slots=True)
class Answer:
    """Holds the head of an answer; header names keep their case."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str:
        """Return the first header of that name, "" if there is none."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")


def is_requested(headers: Headers) -> bool:
    """Tell whether a request asks for an upgrade of its connection."""
    return any(
        name.lower() == "connection" and "upgrade" in value.lower() for name, value in headers
    )


def request(
    method: str,
    host: str,
    path: str,
    query: str,
    headers: Headers,
    own: Headers,
) -> bytes:
    """Build the head of the request to the target: its protocol headers, and our own.

    The query is escaped already. The caller's credentials and everything else that concerns one hop
    only are left out. Raises Refused (400) for a header that is not ASCII, since the target may
    read it differently.
    """
    kept = [(name, value) for name, value in headers if name.lower().startswith(_PASSED_ON)]
    for name, value in kept:
        if not value.isascii():
            raise Refused(400, f"the header {name} has characters that are not ASCII")

    lines = [f"{method} {path}{'?' + query if query else ''} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in own]
    lines += ["Connection: Upgrade"]
    lines += [f"{name}: {value}" for name, value in kept]
    if method == "POST":
        lines.append("Content-Length: 0")

    return "\r\n".join(lines).encode("latin-1") + END


def switching_protocols(answer: Answer) -> bytes:
    """Build the head of our 101, with the protocol headers of the target's."""
    lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade"]
    lines += [f"{k}: {v}" for k, v in answer.headers if k.lower().startswith(_PASSED_BACK)]
    return "\r\n".join(lines).encode("latin-1") + END


def parse(head: bytes) -> Answer:
    """Parse a head without its empty line. Raises Refused (502) if it is not HTTP/1.

    A line feed alone ends a line for others, so that a header of a target's own making would be
    passed on within one that is let through.
    """
    lines = head.decode("latin-1").split("\r\n")
    version, _space, rest = lines[0].partition(" ")
    code, _space, reason = rest.partition(" ")
    status = numbers.natural(code, digits=3)
    is_ambiguous = any(_CONTROL.search(line) for line in lines)
    if not version.startswith("HTTP/1.") or status is None or is_ambiguous:
        raise Refused(502, "the target's API server did not answer in HTTP/1.1")

    headers = [line.partition(":") for line in lines[1:]]
    pairs = tuple((name.strip(), value.strip()) for name, _colon, value in headers)
    return Answer(status, reason, pairs)


def dechunk(body: bytes) -> bytes:
    """Return the content of a chunked body as far as it was received.

    Each byte is looked at once: chunks may have one byte each.
    """
    content, position = [], 0
    while (end := body.find(b"\r\n", position)) >= 0:
        try:
            length = int(body[position:end].partition(b";")[0], 16)
        except ValueError:
            break

        if length <= 0:
            break

        position = end + 2 + length + 2
        content.append(body[end + 2 : end + 2 + length])

    return b"".join(content)


def is_complete(answer: Answer, body: bytes | bytearray) -> bool:
    """Tell whether all of the body of a (short) error answer was received."""
    if answer.header("transfer-encoding").lower() == "chunked":
        return body.endswith(b"0\r\n\r\n")

    length = numbers.natural(answer.header("content-length"))
    return length is not None and len(body) >= length
