"""Puts copies into targets: creates, updates, and never touches what is somebody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, Invalid
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import copies
from vnode.following.family import Family, Original
from vnode.following.there import There
from vnode.following.users import Key
from vnode.kube.client import Client

LOOK_AGAIN: Final = 30.0  # seconds between looks at what only somebody else can change

Outcome = tuple[str, float | None]
"""What is to be said to users, "" if nothing; and after how many seconds to look again."""


class _Foreign(NamedTuple):
    """Somebody else's object is in the place of a copy; `note` is "" if it holds the same."""

    note: str
    digest: str  # of the original that it was compared with
    until: float  # monotonic: when to look again


class Writer:
    """Writes one copy at a time; `complain` hears once of each object that is in the way."""

    def __init__(
        self, identity: Identity, complain: Callable[[Key, str], None], clock: Clock
    ) -> None:
        self._identity = identity
        self._complain = complain
        self._clock = clock
        self._foreign: dict[Key, _Foreign] = {}

    def forget(self, key: Key) -> None:
        """Nobody wants it there any more."""
        self._foreign.pop(key, None)

    async def put(
        self, key: Key, there: There, family: Family, original: Original, copy: Object | None
    ) -> Outcome:
        """Make the copy, of which `copy` is what is known, what the original says."""
        if copy is not None:
            self.forget(key)
            if not family.same(key.ref, copy, original):
                await self._update(key, there, family, original, copy)

            return "", None

        foreign = self._foreign.get(key)
        if foreign is not None and foreign.digest == original.digest:
            left = foreign.until - self._clock.monotonic()
            if left > 0:
                return foreign.note, left

        return await self._create(key, there, family, original)

    async def _create(self, key: Key, there: There, family: Family, original: Original) -> Outcome:
        ref, client = key.ref, there.link.client
        body = await family.build(ref, original, there.link)
        if body is None:
            return "", None

        try:
            await _post(client, family, ref.kind, body)
        except AlreadyExists:
            present = await client.get(ref.kind, ref.name, ref.namespace)
        else:
            self.forget(key)
            return "", None

        if objects.uid(present) == original.uid:
            return "", None  # this target is the source itself, by another name

        trimmed = family.trim(present)
        if not self._identity.made(present):
            return self._leave_alone(key, there, original, alike=family.alike(trimmed, original))

        if not family.same(ref, trimmed, original):
            await self._update(key, there, family, original, trimmed)

        return "", None

    def _leave_alone(self, key: Key, there: There, original: Original, *, alike: bool) -> Outcome:
        note = "" if alike else foreign(key, there)
        until = self._clock.monotonic() + LOOK_AGAIN
        self._foreign[key] = _Foreign(note, original.digest, until)
        if note:
            self._complain(key, note)

        return note, LOOK_AGAIN

    async def _update(
        self, key: Key, there: There, family: Family, original: Original, copy: Object
    ) -> None:
        kind, client = key.ref.kind, there.link.client
        body = await family.build(key.ref, original, there.link)
        if body is None:
            return

        after = copies.successor(family.relaxed(body) or body, copy)
        try:
            await client.replace(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **after})
        except Invalid:  # immutable, or of another type
            await client.discard(kind, copy)
            await _post(client, family, kind, body)


def foreign(key: Key, there: There) -> str:
    """What users are told of an object that is in the way."""
    return (
        f"{key.ref} of target {there.link.target.name} is not from this cluster and differs: it is "
        "used as it is; rename one of them, or delete that one for this one to follow"
    )


async def _post(client: Client, family: Family, kind: Kind, body: Object) -> None:
    try:
        await client.create(kind, body)
    except Invalid:
        relaxed = family.relaxed(body)
        if relaxed is None:
            raise

        await client.create(kind, relaxed)
