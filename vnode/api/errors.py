"""The one exception tree of vnode, by what a caller does about each.

VnodeError
 |- ConfigError         an input is wrong: show the message, which names the cure; wait for a change
 |- Unreachable         no answer: the request may or may not have happened; check, then retry
 |   `- TooLarge        the answer is larger than it may be: ask for less, if that is possible
 `- ApiError            an API server answered with an error status
     |- NotFound        the object (or its namespace, or its kind) does not exist
     |- AlreadyExists   a create lost against an earlier one: fetch and compare
     |- Conflict        the object has changed since: decide again from its newer state
     |- Gone            the resource version is too old: list again
     |- Denied          401 or 403: credentials or rights are missing; retrying does not help
     |- Invalid         the object is not acceptable; retrying does not help: 400, 422, any 4xx that
     |                  is none of these, and whatever admission denies
     |- TooManyRequests wait `retry_after` seconds, then retry
     `- ServerError     5xx, or 408: try again later

A webhook or a policy denies with any code that its author chose, so that 404 may not mean that
something is missing, nor 503 that it may pass: by its message it is a denial, which is Invalid, or
Denied where the code is 403.

Texts of answers are cut at 512 characters, so that no object, and no secret in it, ends up in a
log, and are one line without invisible characters.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from vnode.api import visible

MESSAGE_LIMIT: Final = 512
_DENIAL: Final = re.compile(
    r'admission webhook ".*?" denied the request|ValidatingAdmissionPolicy .* denied request'
)


class VnodeError(Exception):
    """Root of all errors that vnode raises on purpose."""


class ConfigError(VnodeError):
    """Input that cannot work; the message says what to change."""


class NotGranted(ConfigError):
    """What an administrator of a target has not allowed, and may allow at any time."""


class Unreachable(VnodeError):
    """No (complete) answer: refused, timed out, cut, or not trusted."""


class TooLarge(Unreachable):
    """An answer with more bytes, or more JSON values, than are accepted."""


class ApiError(VnodeError):
    """An error answer of an API server.

    `status` is the HTTP code, `reason` the machine-readable reason of metav1.Status ("" if there
    was none), `message` its text.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        self.message = visible.line(message[:MESSAGE_LIMIT])
        super().__init__(f"{status} {reason}: {self.message}".replace(" : ", ": "))


class NotFound(ApiError):
    """404."""


class AlreadyExists(ApiError):
    """409 of a create."""


class Conflict(ApiError):
    """409 of anything else."""


class Gone(ApiError):
    """410: expired resource version or continue token."""


class Denied(ApiError):
    """401 or 403."""


class Invalid(ApiError):
    """A denial, or another 4xx; `immutable` if it would be acceptable as a new object."""

    immutable: bool = False


class TooManyRequests(ApiError):
    """429; `retry_after` is in seconds, 1 where the server named none."""

    retry_after: float = 1.0


class ServerError(ApiError):
    """5xx or 408."""


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    408: ServerError,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def from_status(status: int, reason: str, message: str) -> ApiError:
    """Return the error for an HTTP answer; one below 400 is a plain ApiError."""
    if _DENIAL.search(message):
        denied = Denied if status == HTTPStatus.FORBIDDEN else Invalid
        return denied(status, reason, message)

    if reason == "AlreadyExists":
        return AlreadyExists(status, reason, message)

    if reason in ("Expired", "Gone"):
        return Gone(status, reason, message)

    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerError(status, reason, message)

    other = ApiError if status < HTTPStatus.BAD_REQUEST else Invalid
    return _BY_STATUS.get(status, other)(status, reason, message)
