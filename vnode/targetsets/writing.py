"""Writes Targets for a set: makes, marks and deletes them, and keeps what their profiles say."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, Conflict, Denied, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.runtime.expectations import Expectations
from vnode.targets import cluster_identity, finalizing
from vnode.targets.profiles import last_profile
from vnode.targetsets import deciding, spec
from vnode.targetsets.deciding import SetOutcome

_TRIED: Final = 60.0  # seconds until a Target that was refused is tried again

log = logging.getLogger(__name__)


class TargetWriter:
    """Writes Targets of sets, and knows which of its writes the store does not show yet."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._written = Expectations()
        # By a Target that exists: version of its profile, text.
        self._texts: dict[str, tuple[str, str]] = {}
        # By the UID of a set that exists, and the name of a Target: until when it is not tried.
        self._refused: dict[str, dict[str, tuple[float, SetOutcome]]] = {}

    def pending(self, target: Object) -> bool:
        """Tell whether a Target is older than our last write, whose event wakes its set."""
        return self._written.pending(objects.key(target), target)

    def forget_set(self, uid: str) -> None:
        """Drop what is known of a set that is gone: tenants may make others, without end."""
        self._refused.pop(uid, None)

    def forget_target(self, key: str) -> None:
        """Drop what is known of a Target that is gone, likewise."""
        self._written.forget(key)
        self._texts.pop(key, None)

    async def create(self, obj: Object, name: str, profile: str) -> SetOutcome | None:
        """Make a Target of a profile; return why that was refused, None if it was made."""
        refusals, now = self._refused.setdefault(objects.uid(obj), {}), self._clock.monotonic()
        if (refused := refusals.get(name)) and now < refused[0]:
            return refused[1]

        kind = spec.target_kind(obj)
        try:
            await self._client.create(kind, build(obj, name, profile))
        except (Denied, Invalid) as error:
            outcome = SetOutcome(deciding.NOT_CREATED, error.message)
            refusals[name] = now + _TRIED, outcome
            return outcome
        except AlreadyExists:
            return None  # its event wakes the set

        refusals.pop(name, None)
        log.info("%s/%s made of profile %s", kind.kind.lower(), name, profile)
        return None

    async def remember(self, target: Object, profile: Object) -> None:
        """Keep what a profile says in the status of its Target."""
        key, version = objects.key(target), objects.resource_version(profile)
        known, text = self._texts.get(key, ("", ""))
        if known != version:
            text = last_profile.text_of(profile)
            self._texts[key] = version, text

        if text and objects.status(target).get(last_profile.FIELD) != text:
            body = objects.status_patch(target, {last_profile.FIELD: text})
            await self._patch(target, body, subresource="status")

    async def mark(self, target: Object, since: datetime | None) -> None:
        """Note on a Target since when its profile is gone, None if it is not."""
        text = objects.timestamp(since) if since else None
        metadata = {"uid": objects.uid(target), "annotations": {keys.PROFILE_GONE: text}}
        await self._patch(target, {"metadata": metadata})

    async def delete(self, target: Object) -> None:
        """Delete a Target that has no pods any more; it goes once its cluster is cleaned up.

        One that was never connected has nothing there.
        """
        try:
            held = keys.CLEAN_UP in objects.finalizers(target)
            if not held and cluster_identity.recorded(target):
                await finalizing.add_finalizer(self._client, target)
        except (Conflict, NotFound):
            return  # its event wakes the set

        log.info("target %s is deleted: its profile is gone", objects.key(target))
        await self._client.discard(spec.target_kind(target), target)

    async def _patch(self, target: Object, body: Object, subresource: str | None = None) -> None:
        try:
            await self._written.patch(
                self._client, spec.target_kind(target), target, body, subresource=subresource
            )
        except Conflict:
            log.debug("target %s is another one now", objects.key(target))


def build(obj: Object, name: str, profile: str) -> Object:
    """Build the Target that a set makes of a profile, `namespace/name`."""
    namespace, own = objects.split_key(profile)
    place = {"namespace": objects.namespace(obj)} if objects.namespace(obj) else {}
    reference = {"name": own} if place else {"namespace": namespace, "name": own}
    kind = spec.kind_of(obj)
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": objects.name(obj)}
    return {
        "metadata": {
            **place,
            "name": name,
            "labels": {keys.TARGET_SET: objects.name(obj)},
            "ownerReferences": [{**owner, "uid": objects.uid(obj), "controller": True}],
        },
        "spec": {"clusterProfile": reference},
    }
