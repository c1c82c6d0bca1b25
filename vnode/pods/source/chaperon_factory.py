"""Builds the chaperons of a source's pods: as the target's options and override policies want them.

A chaperon comes to be in one way, be it a candidate or the chaperon of a pod that somebody else has
bound: rules are chosen, the pod is translated, and what it refers to is copied to the target, where
some Secrets are tokens of the target's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial

from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.pods import chaperons
from vnode.pods.overriding import Overrides
from vnode.runtime.links import Link

EnsureCopies = Callable[[Object, Link], Awaitable[tuple[str, Collection[str]]]]
"""Ensures that a target has what a pod refers to, before its chaperon is created. Returns a note
for the pod's user, or "", and the Secrets for which the target has tokens; VnodeError if the target
must not have the pod now."""


class ChaperonFactory:
    """Knows what chaperons of this cluster are built from."""

    def __init__(
        self,
        identity: Identity,
        manifests: SavedManifests,
        overrides: Overrides,
        ensure_copies: EnsureCopies,
    ) -> None:
        self.identity = identity
        self._manifests = manifests
        self._overrides = overrides
        self._ensure_copies = ensure_copies

    async def build(
        self, pod: Object, link: Link, *, allowed: bool, preemption: str = ""
    ) -> tuple[Object, str]:
        """Return a new chaperon, whose copies are in the target, and the note of `EnsureCopies`.

        Raises VnodeError if the pod must not go there now.
        """
        override = self._overrides.choose(pod, link)
        build = partial(
            chaperons.for_link,
            *(pod, self.identity, link),
            manifests=self._manifests,
            allowed=allowed,
            override=override,
            preemption=preemption,
        )
        built, referring = build(), pod
        if override:
            referring = chaperons.overridden(pod, self.identity, link, self._manifests, override)

        note, tokens = await self._ensure_copies(referring, link)
        return (build(tokens=tokens) if tokens else built), note

    def rebuild(self, pod: Object, chaperon: Object, link: Link) -> Object:
        """Return what the chaperon of a pod that runs would be now, by the rules that it has.

        Raises ConfigError if these cannot be known.
        """
        return chaperons.build(
            pod,
            self.identity,
            str(link.target),
            manifests=self._manifests,
            allowed=True,
            finalizer=True,
            source_api=link.options.source_api,
            tokens=chaperons.tokens_of(chaperon),
            override=self._overrides.recorded(pod, chaperon, link),
            priorities=link.priorities,
            storage_classes=link.options.storage_classes,
        )
