"""Reads the answers of an API server within bounds, and turns failures into errors.

The other side need not be an API server, nor honest: whoever wrote the kubeconfig chose it. So
sizes are bounded, and its text is passed on only if it is a metav1.Status.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import aiohttp
import msgspec

from vnode.api import errors, shapes
from vnode.api.objects import Object
from vnode.kube import answer_heads, answer_limits, decoding

_IMMUTABLE: Final = re.compile(
    # Matched against the whole message: the value quoted in it may be anything.
    r"Forbidden: (field|spec) is immutable.*"
    r"|Invalid value: .*: (field is immutable|may not change once set)",
    re.DOTALL,
)

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
    except errors.TooLarge as error:
        raise errors.TooLarge(f"{name}: {error}") from error
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
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(
        error, aiohttp.ClientSSLError
    ):
        text = _no_connection(error)
    elif isinstance(error, aiohttp.ClientResponseError):
        text = "the answer is not HTTP"  # the error quotes the answer, which may be a secret

    return errors.Unreachable(f"{name}: {text or type(error).__name__}")


def _no_connection(error: aiohttp.ClientConnectorError) -> str:
    """Return to where there is no connection, and why, in the system's words."""
    cause = error.os_error
    number = cause.errno or 0
    why = os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return f"cannot connect to {error.host}:{error.port}: {why}"


async def read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the whole body; TooLarge if it has more than `limit` bytes once decompressed."""
    blocks, size = [], 0
    async for block in response.content.iter_any():
        answer_heads.refuse_framing(response)
        blocks.append(block)
        size += len(block)
        if size > limit:
            raise errors.TooLarge(f"the answer has more than {limit} bytes")

    return b"".join(blocks)


async def read_error(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an error answer; an empty one if it is too large to be a Status."""
    try:
        return await read(response, answer_limits.STATUS.size)
    except errors.TooLarge:
        return b""


def object_of(answer: Any, name: str, description: str) -> Object:
    """Return an answer that is an object; Unreachable if it is something else.

    A missing object is a 404. Any other answer without it, from a proxy in between perhaps, proves
    nothing.
    """
    found = outcome_of(answer, name, description)
    if not isinstance(found.get("metadata"), dict):
        raise _no_object(name, description)

    return found


def outcome_of(answer: Any, name: str, description: str) -> Object:
    """Return the object that a write was answered with; an empty one if that was a Status.

    A review has no metadata. Unreachable if the answer is neither: nobody knows what it means.
    """
    if isinstance(answer, dict) and answer.get("kind") == "Status":
        return {}

    if not shapes.is_object(answer):
        raise _no_object(name, description)

    found: Object = answer
    return found


def _no_object(name: str, description: str) -> errors.Unreachable:
    return errors.Unreachable(f"{name}: the answer has no {description}")


def status_of(payload: bytes) -> Object | None:
    """Decode a metav1.Status; None if the payload is something else, or too large."""
    if len(payload) > answer_limits.STATUS.size:
        return None

    try:
        found = decoding.decode_at_once(payload, answer_limits.STATUS)
    except errors.Unreachable:
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
        seconds = float(value or 1)
    except ValueError:
        return 1.0

    return 1.0 if math.isnan(seconds) else min(max(seconds, 0.1), 60.0)


def is_about_immutable(status: Any) -> bool:
    """Tell whether all causes of a refusal are fields that cannot change."""
    causes = _causes(status)
    return bool(causes) and all(_IMMUTABLE.fullmatch(cause.message) for cause in causes)


def _causes(status: Any) -> list[_Cause]:
    try:
        return msgspec.convert(status, _Status).details.causes
    except msgspec.ValidationError:
        return []
