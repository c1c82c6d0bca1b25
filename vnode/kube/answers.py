"""Reads and decodes the answers of an API server within bounds, and turns failures into errors.

The other side need not be an API server, nor honest: whoever wrote the kubeconfig chose it. So
sizes are bounded, and its text is passed on only if it is a metav1.Status.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import aiohttp
import msgspec

from vnode.api import documents, errors
from vnode.api.objects import Object

LIMIT: Final = 128 * 1024 * 1024  # bytes of a page; one of large pods takes some ten MiB
ELEMENTS: Final = 2_000_000  # of a page: 500 objects; a large pod has a thousand
OBJECT_ELEMENTS: Final = 400_000  # of any other answer, and of an event
ERROR_LIMIT: Final = 1024 * 1024  # bytes of an error answer

_IMMUTABLE: Final = re.compile(
    # Matched against the whole message: the value quoted in it may be anything.
    r"Forbidden: (field|spec) is immutable.*"
    r"|Invalid value: .*: (field is immutable|may not change once set)",
    re.DOTALL,
)

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A string of JSON, or what is left of one: it takes linear time whatever the text is."""

_NO_ANSWER: Final = (aiohttp.ClientError, TimeoutError, OSError, RuntimeError)
"""What aiohttp raises if no answer comes; RuntimeError if the session was closed meanwhile."""

log = logging.getLogger(__name__)


class _Cause(msgspec.Struct):
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    details: _Details = msgspec.field(default_factory=_Details)


async def abort(response: aiohttp.ClientResponse) -> None:
    """Drop the connection of an answer that is still being sent.

    The other side would answer a TLS close_notify only after everything that it has yet to send.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()

    response.close()
    await asyncio.sleep(0)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise Unreachable, with the name of the cluster, for whatever goes wrong inside.

    Whoever wrote the kubeconfig chose the server, its name and the credentials, so nobody can list
    what libraries may raise because of them. Errors of vnode pass.
    """
    try:
        yield
    except errors.VnodeError:
        raise
    except _NO_ANSWER as error:
        raise unreachable(name, error) from error
    except Exception as error:
        log.warning("%s: unexpected %s", name, type(error).__name__, exc_info=True)
        raise errors.Unreachable(
            f"{name}: unexpected {type(error).__name__}: see the agent's log"
        ) from error


def unreachable(name: str, error: BaseException) -> errors.Unreachable:
    """Return the error for a missing answer, with the cluster's name."""
    text = "timed out" if isinstance(error, asyncio.TimeoutError) else str(error)
    if isinstance(error, aiohttp.ClientResponseError):
        text = "the answer is not HTTP"  # the error quotes the answer, which may be a secret

    return errors.Unreachable(f"{name}: {text or type(error).__name__}")


async def read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the whole body; ClientPayloadError if it has more than `limit` bytes."""
    blocks, size = [], 0
    async for block in response.content.iter_any():
        blocks.append(block)
        size += len(block)
        if size > limit:
            raise aiohttp.ClientPayloadError(f"the answer has more than {limit} bytes")

    return b"".join(blocks)


def decode(payload: bytes, elements: int = OBJECT_ELEMENTS) -> Any:
    """Decode JSON, None for an empty payload; Unreachable if it is not JSON, or of odd size."""
    if not payload:
        return None

    refuse_unbounded(payload, elements)
    try:
        return msgspec.json.decode(payload)
    except documents.NO_JSON as error:
        raise errors.Unreachable(f"the answer is not JSON: {error}") from error


def refuse_unbounded(payload: bytes, elements: int) -> None:
    """Raise Unreachable if JSON has more values than that: two bytes can take 200 in memory."""
    if _values(payload) > elements and _values(_STRING.sub(b"", payload)) > elements:
        raise errors.Unreachable(f"the answer has more than {elements} values")


def _values(payload: bytes) -> int:
    """Return how many values there are at most. It counts what is in strings, too."""
    return 1 + payload.count(b",") + payload.count(b"{") + payload.count(b"[")


def object_of(answer: Any, name: str, description: str) -> Object:
    """Return an answer that is an object; Unreachable if it is something else.

    A missing object is a 404. Any other answer without it, from a proxy in between perhaps, proves
    nothing.
    """
    if isinstance(answer, dict) and isinstance(answer.get("metadata"), dict):
        return answer

    raise errors.Unreachable(f"{name}: the answer has no {description}")


def list_page(answer: Any, name: str, plural: str) -> Object:
    """Return an answer that is a page of a list, maybe an empty one; else raise Unreachable.

    An API server names the kind of its answer; Go writes a list that was never filled as null.
    """
    if (
        isinstance(answer, dict)
        and str(answer.get("kind") or "").endswith("List")
        and isinstance(answer.get("metadata"), dict)
        and isinstance(answer.get("items", ""), list | None)
    ):
        return answer

    raise errors.Unreachable(f"{name}: the answer is no list of {plural}")


def status_of(payload: bytes) -> Object | None:
    """Decode a metav1.Status; None if the payload is something else, or too large."""
    if len(payload) > ERROR_LIMIT:
        return None

    try:
        found = msgspec.json.decode(payload)
    except documents.NO_JSON:
        return None

    return found if isinstance(found, dict) and found.get("kind") == "Status" else None


def error_of(response: aiohttp.ClientResponse, payload: bytes) -> errors.ApiError:
    """Return the error for an answer with a status code of 300 or more."""
    status = status_of(payload)
    if status is None:
        # Whoever wrote the kubeconfig sees our messages, and must not read other servers in them.
        status = {"message": f"HTTP {response.status}, and the answer is no Kubernetes Status"}

    error = refusal(response.status, status)
    if isinstance(error, errors.TooManyRequests):
        error.retry_after = _seconds(response.headers.get("Retry-After"))

    return error


def refusal(code: int, status: Object) -> errors.ApiError:
    """Return the error for an answer with that code and metav1.Status.

    A patch with the UID of a deleted object may meet a new object of its name. API servers call
    that Invalid, a change of the UID; here it is a Conflict, as for any failed precondition.
    """
    reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    error = errors.from_status(code, reason, message)
    if isinstance(error, errors.Invalid):
        if {cause.field for cause in _causes(status)} == {"metadata.uid"}:
            return errors.Conflict(code, reason, message)

        error.immutable = is_about_immutable(status)

    return error


def _seconds(value: str | None) -> float:
    try:
        return min(max(float(value or 1), 0.1), 60.0)
    except ValueError:
        return 1.0


def is_about_immutable(status: Any) -> bool:
    """Tell whether all causes of a refusal are fields that cannot change."""
    causes = _causes(status)
    return bool(causes) and all(_IMMUTABLE.fullmatch(cause.message) for cause in causes)


def _causes(status: Any) -> list[_Cause]:
    try:
        return msgspec.convert(status, _Status).details.causes
    except msgspec.ValidationError:
        return []
