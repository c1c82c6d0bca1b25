"""What an API server has answered: read within bounds, decoded, or told as an error.

The other side need not be an API server, nor honest: who wrote the kubeconfig chose it. So sizes
are bounded, and its words are passed on only if they are those of an API server.
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

LIMIT: Final = 128 * 1024 * 1024  # bytes; a page of large pods takes some ten MiB
ERROR_LIMIT: Final = 1024 * 1024  # bytes of an answer that says what is wrong

_IMMUTABLE: Final = re.compile(
    # All of the message: the value that is quoted in it may say anything.
    r"Forbidden: (field|spec) is immutable.*"
    r"|Invalid value: .*: (field is immutable|may not change once set)",
    re.DOTALL,
)


_NO_ANSWER: Final = (aiohttp.ClientError, TimeoutError, OSError, RuntimeError)
"""What aiohttp raises where there is no answer; RuntimeError if it was closed meanwhile."""

log = logging.getLogger(__name__)


class _Cause(msgspec.Struct):
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    details: _Details = msgspec.field(default_factory=_Details)


async def hang_up(response: aiohttp.ClientResponse) -> None:
    """Drop the connection of an answer that is still being sent.

    A TLS goodbye would be answered only after all that the other side has yet to send.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()

    response.close()
    await asyncio.sleep(0)


@contextmanager
def expected(name: str) -> Iterator[None]:
    """Whatever goes wrong inside, while the cluster of that name is asked, is Unreachable.

    Who wrote the kubeconfig chooses the server, the name that it is asked by and the credentials,
    so nobody can list what libraries may raise over them. Our own errors pass.
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
    """The error for no answer, with the cluster's name."""
    text = "timed out" if isinstance(error, asyncio.TimeoutError) else str(error)
    if isinstance(error, aiohttp.ClientResponseError):
        text = "the answer is not HTTP"  # the error quotes what came, a secret of another's perhaps

    return errors.Unreachable(f"{name}: {text or type(error).__name__}")


async def read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole answer; ClientPayloadError if the other side exceeds `limit` bytes."""
    blocks, size = [], 0
    async for block in response.content.iter_any():
        blocks.append(block)
        size += len(block)
        if size > limit:
            raise aiohttp.ClientPayloadError(f"the answer has more than {limit} bytes")

    return b"".join(blocks)


def decode(payload: bytes) -> Any:
    """The JSON of an answer, None if it is empty; Unreachable if it is none."""
    if not payload:
        return None

    try:
        return msgspec.json.decode(payload)
    except documents.NO_JSON as error:
        raise errors.Unreachable(f"the answer is not JSON: {error}") from error


def one(answer: Any, name: str, what: str) -> Object:
    """The object that was asked for; Unreachable if this is something else.

    What is not there is a 404. Anything else without the object, from a proxy in between perhaps,
    says nothing about it.
    """
    if isinstance(answer, dict) and isinstance(answer.get("metadata"), dict):
        return answer

    raise errors.Unreachable(f"{name}: the answer has no {what}")


def page(answer: Any, name: str, plural: str) -> Object:
    """One page of a list; Unreachable if it is none, which is not the same as an empty one.

    An API server says what it sends; Go writes a list that was never filled as null.
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
    """The metav1.Status that a payload is, None if it is something else."""
    try:
        found = msgspec.json.decode(payload)
    except documents.NO_JSON:
        return None

    return found if isinstance(found, dict) and found.get("kind") == "Status" else None


def error_of(response: aiohttp.ClientResponse, payload: bytes) -> errors.ApiError:
    """The error that an answer of 300 or more is."""
    status = status_of(payload)
    if status is None:
        # Whoever wrote the kubeconfig sees our messages, and must not read other servers by them.
        status = {"message": f"HTTP {response.status}, and not in the words of an API server"}

    error = refusal(response.status, status)
    if isinstance(error, errors.TooManyRequests):
        error.retry_after = _seconds(response.headers.get("Retry-After"))

    return error


def refusal(code: int, status: Object) -> errors.ApiError:
    """Build the error for an answer of that code and metav1.Status.

    A patch with the UID of an object that is gone meets its namesake. API servers call that
    invalid, as a change of the UID; to us it is the Conflict that a precondition gives.
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
    """A refusal that names fields which cannot change, and nothing else that is wrong."""
    causes = _causes(status)
    return bool(causes) and all(_IMMUTABLE.fullmatch(cause.message) for cause in causes)


def _causes(status: Any) -> list[_Cause]:
    try:
        return msgspec.convert(status, _Status).details.causes
    except msgspec.ValidationError:
        return []
