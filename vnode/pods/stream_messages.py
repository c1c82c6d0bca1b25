"""Defines what the agents of a source and a target tell each other on a stream. Pure.

A stream is a WebSocket from the source's agent to one replica of the target's, through the target's
API server. It spares two writes for each pod (docs/decisions/0132): the target says which
candidates are reserved, the source which of them are allowed. Nothing depends on it: what was said
on a stream that ends is written to the chaperon instead.

Each message is a JSON object. The source begins with `Hello`, whose secret only it can know: the
digest of that is on its chaperons, and a stream is about those alone. The target answers with
`Welcome`, and with all that is reserved. From then on both tell what changes.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated, Final, TypeVar

import msgspec

from vnode.api import names
from vnode.api.errors import ConfigError

PORT_NAME: Final = "streams"
SERVICE: Final = "vnode"
PATH: Final = "/streams"
PROTOCOL: Final = "v1.streams.vnode.dev"
MOST: Final = 150
"""Candidates in a list of a message; the longest names and a UID make 400 bytes of one."""
LARGEST: Final = 128 * 1024
"""Bytes of a message."""

_CONTEXT: Final = b"vnode streams 1\0"

M = TypeVar("M", bound=msgspec.Struct)

Name = Annotated[str, msgspec.Meta(max_length=400)]
Replica = Annotated[str, msgspec.Meta(max_length=300)]
"""Names a replica as in its Lease: a host's name or a pod's, and numbers."""


class StreamEnded(Exception):
    """Reports that a stream has ended, or that the other side says what it should not."""


class CandidateName(msgspec.Struct, frozen=True, array_like=True):
    """Names the chaperon of a candidate: NAMESPACE/NAME, and its UID."""

    key: Name
    uid: Name


Candidates = Annotated[tuple[CandidateName, ...], msgspec.Meta(max_length=MOST)]


class Hello(msgspec.Struct, frozen=True):
    """Begins a stream."""

    secret: Name


class Welcome(msgspec.Struct, frozen=True):
    """Says which replica of the target's agent answers."""

    replica: Replica


class ReservationNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """Says which candidates have a place now, and which have lost it, from the target.

    Those are `confirmed` of which whoever holds the place knows that they may run.
    """

    reserved: Candidates = ()
    withdrawn: Candidates = ()
    confirmed: Candidates = ()


class PermissionNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """Says which candidates may run from now on, from the source.

    Of those that are `acknowledged` it knows that they have a place, and has not decided yet.
    """

    allowed: Candidates = ()
    acknowledged: Candidates = ()


def secret(key: bytes, target: str) -> str:
    """Return what a source says to a target to be known; `key` is the source's alone.

    It is the same after a restart. A target cannot use it in another one.
    """
    return hmac.new(key, _CONTEXT + target.encode(), hashlib.sha256).hexdigest()


def digest(said: str) -> str:
    """Return what chaperons show of a secret."""
    return hashlib.sha256(said.encode()).hexdigest()


def path(namespace: str) -> str:
    """Return the path of the stream at an API server; `namespace` is that of the agents there.

    Raises ConfigError if it is no name of a namespace: the target says it.
    """
    if not names.LABEL.fullmatch(namespace):
        raise ConfigError(f"{namespace!r} is no name of a namespace")

    service = f"https:{SERVICE}:{PORT_NAME}"
    return f"/api/v1/namespaces/{namespace}/services/{service}/proxy{PATH}"


def encode(message: msgspec.Struct) -> str:
    """Return a message as it is sent."""
    return msgspec.json.encode(message).decode()


def decode(kind: type[M], text: str) -> M:
    """Return a message; StreamEnded if it is none of that kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise StreamEnded(f"a message is no {kind.__name__}: {error}") from error
