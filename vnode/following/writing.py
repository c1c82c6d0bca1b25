"""Writes copies into targets: creates and updates them, and never touches other objects."""

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
from vnode.runtime.link import Link

RECHECK: Final = 30.0  # seconds between checks of what only somebody else can change

Outcome = tuple[str, float | None]
"""The message to users, "" if none; and the seconds after which to reconcile again, if any."""

Pace = Callable[[Key], float]
"""Returns the seconds for which a write has to wait; else it counts it."""


class _Foreign(NamedTuple):
    """An object in the place of a copy: somebody else's, or the copy of an earlier original.

    `message` is "" if its content is equal.
    """

    message: str
    digest: str  # of the original that it was compared with
    until: float  # monotonic: when to check again
    link: Link  # to the cluster that has it; that of a later link may be another one


class _Marked(NamedTuple):
    """Labels and annotations that were written; a target's webhooks may have changed them."""

    wanted: str  # `copies.marks`, as all here
    got: str
    until: float  # monotonic: when to write the same again, should somebody change them


class Writer:
    """Writes one copy at a time.

    `warn` is called once for each object that is in the way, `notify` for each copy that was
    deleted and recreated.
    """

    def __init__(
        self,
        identity: Identity,
        warn: Callable[[Key, str], None],
        notify: Callable[[Key, str], None],
        clock: Clock,
    ) -> None:
        self._identity = identity
        self._warn = warn
        self._notify = notify
        self._clock = clock
        self._foreign: dict[Key, _Foreign] = {}
        self._marked: dict[Key, _Marked] = {}

    def forget(self, key: Key) -> None:
        """Drop what is known of a key that is wanted no more."""
        self._foreign.pop(key, None)
        self._marked.pop(key, None)

    async def put(
        self,
        key: Key,
        remote: TargetCopies,
        family: Family,
        original: Original,
        copy: Object | None,
        pace: Pace,
    ) -> Outcome:
        """Create the copy, or update `copy`, the present one, to what the original says.

        `pace` is called before a write.
        """
        if copy is not None and family.replaces(copy, original):
            self._foreign.pop(key, None)
            return await self._keep(key, remote, family, original, copy, pace)

        foreign = self._foreign.get(key)
        known = foreign is not None and foreign.link is remote.link
        if foreign is not None and known and foreign.digest == original.digest:
            left = foreign.until - self._clock.monotonic()
            if left > 0:
                return foreign.message, left

        if copy is not None:
            message = predecessor_message(key, remote, original)
            return self._leave_alone(key, remote, original, message)

        return await self._create(key, remote, family, original, pace)

    async def _keep(
        self,
        key: Key,
        remote: TargetCopies,
        family: Family,
        original: Original,
        copy: Object,
        pace: Pace,
    ) -> Outcome:
        """Update a copy if it is not as it should be."""
        if not family.is_up_to_date(key.ref, copy, original):
            if wait := pace(key):
                return "", wait

            await self._update(key, remote, family, original, copy)
            return "", None

        marks, marked = copies.marks(copy), self._marked.get(key)
        if original.marks is None or original.marks == marks:
            return "", None

        if marked is not None and marked.wanted == original.marks:
            if marked.got == marks:
                return "", None  # the target's webhooks insist on it

            left = marked.until - self._clock.monotonic()
            if left > 0:
                return "", left

        if wait := pace(key):
            return "", wait

        try:
            await self._update(key, remote, family, original, copy)
        except (Denied, Invalid) as error:  # a pod can start without
            name = remote.link.target.name
            self._warn(key, f"labels of {key.ref} cannot follow to target {name}: {error.message}")
            return "", RECHECK

        return "", None

    async def _create(
        self, key: Key, remote: TargetCopies, family: Family, original: Original, pace: Pace
    ) -> Outcome:
        if wait := pace(key):
            return "", wait

        ref, client = key.ref, remote.link.client
        body = await family.build(ref, original, remote.link)
        if body is None:
            return "", None

        try:
            made = await _post(client, family, ref.kind, body)
        except AlreadyExists:
            present = await client.get(ref.kind, ref.name, ref.namespace)
        else:
            self.forget(key)
            self._remember_marks(key, body, made)
            self._tell(key, remote, original)
            return "", None

        if objects.uid(present) == original.uid:
            return "", None  # the target is the source itself, under another name

        trimmed = family.trim(present)
        # The tokens of pods are ours as well, and no copies: a namesake in the source changes none.
        if not self._identity.made(present) or copies.is_stray(present):
            is_equivalent = family.is_equivalent(trimmed, original)
            message = "" if is_equivalent else foreign_message(key, remote)
            return self._leave_alone(key, remote, original, message)

        return await self.put(key, remote, family, original, trimmed, pace)

    def _leave_alone(
        self, key: Key, remote: TargetCopies, original: Original, message: str
    ) -> Outcome:
        until = self._clock.monotonic() + RECHECK
        self._foreign[key] = _Foreign(message, original.digest, until, remote.link)
        if message:
            self._warn(key, message)

        return message, RECHECK

    async def _update(
        self, key: Key, remote: TargetCopies, family: Family, original: Original, copy: Object
    ) -> None:
        kind, client = key.ref.kind, remote.link.client
        body = await family.build(key.ref, original, remote.link)
        if body is None:
            return

        after = family.update(body, copy)
        if after is None:
            why = "it cannot be updated to match the original"
            made = await self._renew(key, remote, family, body, copy, why)
        else:
            head = {"apiVersion": kind.api_version, "kind": kind.kind}
            try:
                made = await client.replace(kind, {**head, **after})
            except Invalid as error:
                if not error.immutable or family.is_up_to_date(key.ref, copy, original):
                    raise  # labels alone are no reason to recreate it

                made = await self._renew(key, remote, family, body, copy, error.message)

        self._remember_marks(key, body, made)
        self._tell(key, remote, original)

    def _tell(self, key: Key, remote: TargetCopies, original: Original) -> None:
        if original.remark:
            text = f"{key.ref} follows to target {remote.link.target.name} {original.remark}"
            self._warn(key, text)

    async def _renew(
        self, key: Key, remote: TargetCopies, family: Family, body: Object, copy: Object, why: str
    ) -> Object:
        """Delete a copy, which may be in use, and create it again."""
        await remote.link.client.discard(key.ref.kind, copy)
        made = await _post(remote.link.client, family, key.ref.kind, body)
        target = remote.link.target.name
        self._notify(key, f"{key.ref} of target {target} was deleted and recreated: {why}")
        return made

    def _remember_marks(self, key: Key, wanted: Object, made: Object) -> None:
        """Remember what became of the labels and annotations that were written."""
        if shapes.is_copy(made):
            until = self._clock.monotonic() + RECHECK
            self._marked[key] = _Marked(copies.marks(wanted), copies.marks(made), until)


def foreign_message(key: Key, remote: TargetCopies) -> str:
    """Return the message about an object that is in the way."""
    return (
        f"{key.ref} of target {remote.link.target.name} is not from this cluster and differs; it "
        "is used as it is. Rename one of them, or delete it in the target to have it copied"
    )


def predecessor_message(key: Key, remote: TargetCopies, original: Original) -> str:
    """Return the message about a copy that was made of an earlier original of the name."""
    return (
        f"{key.ref} of target {remote.link.target.name} is that of an earlier one of this name; it "
        "is used as it is, with its data. To have a new one copied, delete it in the target; to "
        f"keep it, give it the label {keys.PARENT_UID}={original.uid}"
    )


async def _post(client: Client, family: Family, kind: Kind, body: Object) -> Object:
    try:
        return await client.create(kind, body)
    except Invalid:
        relaxed = family.relaxed(body)
        if relaxed is None:
            raise

        return await client.create(kind, relaxed)
