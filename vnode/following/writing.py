"""Puts copies into targets: creates, updates, and never touches what is somebody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api import keys, objects, shapes
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, Denied, Invalid
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import copies
from vnode.following.family import Family, Original
from vnode.following.reference_index import Key
from vnode.following.remote_copies import TargetCopies
from vnode.kube.client import Client

LOOK_AGAIN: Final = 30.0  # seconds between looks at what only somebody else can change

Outcome = tuple[str, float | None]
"""What is to be said to users, "" if nothing; and after how many seconds to look again."""


class _Foreign(NamedTuple):
    """Another object is in the place of a copy, somebody else's or that of an earlier original;
    `note` is "" if it holds the same."""

    note: str
    digest: str  # of the original that it was compared with
    until: float  # monotonic: when to look again


class _Marked(NamedTuple):
    """Labels and annotations were written; a target's webhooks may have made others of them."""

    wanted: str  # `copies.marks`, as all here
    got: str
    until: float  # monotonic: when to write the same again, should somebody change them


class Writer:
    """Writes one copy at a time; `complain` hears once of each object that is in the way, `tell`
    of copies that had to be deleted for others to take their place."""

    def __init__(
        self,
        identity: Identity,
        complain: Callable[[Key, str], None],
        tell: Callable[[Key, str], None],
        clock: Clock,
    ) -> None:
        self._identity = identity
        self._complain = complain
        self._tell = tell
        self._clock = clock
        self._foreign: dict[Key, _Foreign] = {}
        self._marked: dict[Key, _Marked] = {}

    def forget(self, key: Key) -> None:
        """Nobody wants it there any more."""
        self._foreign.pop(key, None)
        self._marked.pop(key, None)

    async def put(
        self, key: Key, there: TargetCopies, family: Family, original: Original, copy: Object | None
    ) -> Outcome:
        """Make the copy, of which `copy` is what is known, what the original says."""
        if copy is not None and family.replaces(copy, original):
            self._foreign.pop(key, None)
            return await self._keep(key, there, family, original, copy)

        foreign = self._foreign.get(key)
        if foreign is not None and foreign.digest == original.digest:
            left = foreign.until - self._clock.monotonic()
            if left > 0:
                return foreign.note, left

        if copy is not None:
            return self._leave_alone(key, original, earlier(key, there, original))

        return await self._create(key, there, family, original)

    async def _keep(
        self, key: Key, there: TargetCopies, family: Family, original: Original, copy: Object
    ) -> Outcome:
        """Update a copy if it is not what it should be."""
        if not family.same(key.ref, copy, original):
            await self._update(key, there, family, original, copy)
            return "", None

        marks, marked = copies.marks(copy), self._marked.get(key)
        if original.marks is None or original.marks == marks:
            return "", None

        if marked is not None and marked.wanted == original.marks:
            if marked.got == marks:
                return "", None  # so the target will have it

            left = marked.until - self._clock.monotonic()
            if left > 0:
                return "", left

        try:
            await self._update(key, there, family, original, copy)
        except (Denied, Invalid) as error:  # no reason to keep a pod waiting
            name = there.link.target.name
            self._complain(key, f"labels of {key.ref} do not follow to {name}: {error.message}")
            return "", LOOK_AGAIN

        return "", None

    async def _create(
        self, key: Key, there: TargetCopies, family: Family, original: Original
    ) -> Outcome:
        ref, client = key.ref, there.link.client
        body = await family.build(ref, original, there.link)
        if body is None:
            return "", None

        try:
            made = await _post(client, family, ref.kind, body)
        except AlreadyExists:
            present = await client.get(ref.kind, ref.name, ref.namespace)
        else:
            self.forget(key)
            self._note(key, body, made)
            return "", None

        if objects.uid(present) == original.uid:
            return "", None  # this target is the source itself, by another name

        trimmed = family.trim(present)
        if not self._identity.made(present):
            alike = family.alike(trimmed, original)
            return self._leave_alone(key, original, "" if alike else foreign(key, there))

        return await self.put(key, there, family, original, trimmed)

    def _leave_alone(self, key: Key, original: Original, note: str) -> Outcome:
        until = self._clock.monotonic() + LOOK_AGAIN
        self._foreign[key] = _Foreign(note, original.digest, until)
        if note:
            self._complain(key, note)

        return note, LOOK_AGAIN

    async def _update(
        self, key: Key, there: TargetCopies, family: Family, original: Original, copy: Object
    ) -> None:
        kind, client = key.ref.kind, there.link.client
        body = await family.build(key.ref, original, there.link)
        if body is None:
            return

        after = family.update(body, copy)
        if after is None:
            why = "it cannot become what the original is"
            made = await self._renew(key, there, family, body, copy, why)
        else:
            head = {"apiVersion": kind.api_version, "kind": kind.kind}
            try:
                made = await client.replace(kind, {**head, **after})
            except Invalid as error:
                if not error.immutable or family.same(key.ref, copy, original):
                    raise  # never for the sake of a label

                made = await self._renew(key, there, family, body, copy, error.message)

        self._note(key, body, made)

    async def _renew(
        self, key: Key, there: TargetCopies, family: Family, body: Object, copy: Object, why: str
    ) -> Object:
        """Put a new copy in the place of one that is perhaps in use."""
        await there.link.client.discard(key.ref.kind, copy)
        made = await _post(there.link.client, family, key.ref.kind, body)
        target = there.link.target.name
        self._tell(key, f"{key.ref} of target {target} was deleted and made anew: {why}")
        return made

    def _note(self, key: Key, wanted: Object, made: Object) -> None:
        """Remember what became of the labels and annotations that were written."""
        if shapes.is_copy(made):
            until = self._clock.monotonic() + LOOK_AGAIN
            self._marked[key] = _Marked(copies.marks(wanted), copies.marks(made), until)


def foreign(key: Key, there: TargetCopies) -> str:
    """What users are told of an object that is in the way."""
    return (
        f"{key.ref} of target {there.link.target.name} is not from this cluster and differs: it is "
        "used as it is; rename one of them, or delete that one for this one to follow"
    )


def earlier(key: Key, there: TargetCopies, original: Original) -> str:
    """The same of a copy that was made of an earlier original of the name."""
    return (
        f"{key.ref} of target {there.link.target.name} is that of an earlier one of this name: it "
        "is used as it is, with its data; delete that one for a new one to follow, or keep it by "
        f"the label {keys.PARENT_UID}={original.uid}"
    )


async def _post(client: Client, family: Family, kind: Kind, body: Object) -> Object:
    try:
        return await client.create(kind, body)
    except Invalid:
        relaxed = family.relaxed(body)
        if relaxed is None:
            raise

        return await client.create(kind, relaxed)
