"""Decides what a fault proxy does to the requests that pass it: pure.

A fault proxy stands between one agent and one API server. Its fault profile says how slow it is,
which share of the requests is answered with which error, and which share of the writes is done but
not answered. The errors are those that a real API server gives, where it could give them: none may
make a client conclude what is not so.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import parse_qs, urlsplit

_REASONS = {
    409: ("Conflict", "the object has been modified; please apply your changes to the latest"),
    410: ("Expired", "too old resource version: this is an injected fault"),
    429: ("TooManyRequests", "the server is busy: this is an injected fault"),
    500: ("InternalError", "an injected fault"),
}
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_REVIEWS = ("tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews")


class Fate(Enum):
    """What happens to a request that gets no error."""

    PASS = auto()
    LOSE_ANSWER = auto()  # it is done, and the connection ends before the answer arrives


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of a request, as far as anybody looks at it."""

    method: str
    target: str

    @property
    def path(self) -> str:
        """Without the query."""
        return urlsplit(self.target).path

    @property
    def is_watch(self) -> bool:
        """The answer is a stream of events."""
        return parse_qs(urlsplit(self.target).query).get("watch", [""])[0] in ("1", "true")

    @property
    def is_write(self) -> bool:
        """It changes an object: reviews are questions, though they are posted."""
        last = self.path.rsplit("/", 1)[-1]
        return self.method in _WRITES and last not in _REVIEWS


@dataclass(frozen=True, slots=True)
class FaultProfile:
    """Says what goes wrong: `delay` in seconds for each piece of an answer; shares from 0 to 1."""

    delay: float = 0.0
    errors: Mapping[int, float] = field(default_factory=dict)
    lost: float = 0.0

    def fate(self, request: RequestHead, dice: random.Random) -> Fate | int:
        """Return what becomes of a request: a Fate, or the status that it is answered with."""
        for status, share in self.errors.items():
            if could_answer(request, status) and dice.random() < share:
                return status

        if request.is_write and dice.random() < self.lost:
            return Fate.LOSE_ANSWER

        return Fate.PASS


CLEAR = FaultProfile()


def could_answer(request: RequestHead, status: int) -> bool:
    """Tell whether an API server could answer a request with this status.

    It answers a change with 409, and whoever reads from an old version with 410. A 409 to the
    creation of an object is left out: its reason would be that the object exists.
    """
    if status == 409:
        return request.is_write and (
            request.method != "POST" or request.path.endswith(("/binding", "/eviction"))
        )

    if status == 410:
        return request.is_watch or "continue=" in request.target

    return True


def answer(status: int) -> bytes:
    """Return the whole HTTP answer with a metav1.Status."""
    reason, message = _REASONS[status]
    body = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "code": status,
            "reason": reason,
            "message": message,
        }
    ).encode()
    again = "Retry-After: 1\r\n" if status == 429 else ""
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n{again}\r\n"
    )
    return head.encode() + body


def parse(head: bytes) -> tuple[RequestHead, dict[str, str]]:
    """Return the request of an HTTP/1.1 head, and its headers by their lower-case names.

    Raise ValueError if the head is not one of a request.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _version = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _colon, value in pairs}
    return RequestHead(method, target), headers
