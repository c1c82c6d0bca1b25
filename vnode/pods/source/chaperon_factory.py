"""Builds the chaperons of a source's pods: as the target's options and override policies want them.

A chaperon comes to be in one way, be it a candidate or the chaperon of a pod that somebody else has
bound: rules are chosen, the pod is translated, and what it refers to is copied to the target, where
some Secrets are tokens of the target's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial

from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.pods import chaperons
from vnode.pods.overriding import Override, Overrides
from vnode.pods.source import candidate_forms
from vnode.pods.source.candidate_forms import FormInputs
from vnode.runtime.link import Link

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
        stream_digest: Callable[[Link], str] = lambda _link: "",
    ) -> None:
        self.identity = identity
        self._manifests = manifests
        self._overrides = overrides
        self._ensure_copies = ensure_copies
        self._stream_digest = stream_digest  # of this cluster, at a target; "" if it has none

    async def build(
        self, pod: Object, link: Link, *, allowed: bool, preemption: str = ""
    ) -> tuple[Object, str]:
        """Return a new chaperon, whose copies are in the target, and the note of `EnsureCopies`.

        Raises VnodeError if the pod must not go there now.
        """
        if refusal := self._manifests.refusal(pod):
            raise ConfigError(refusal)

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
        if tokens:
            built = build(tokens=tokens)

        if not allowed:
            annotations = built["metadata"]["annotations"]
            annotations[keys.FORM] = candidate_forms.digest(built)
            if digest := self._stream_digest(link):
                annotations[keys.SOURCE_DIGEST] = digest

        return built, note

    def inputs(self, pod: Object, link: Link) -> FormInputs:
        """Return what a candidate of the pod would be built from now.

        Raises VnodeError if the pod must not go there now.
        """
        override = self._overrides.choose(pod, link)
        rules = override.rules if override else None
        return FormInputs(pod, link.options, link.priorities, rules)

    def form(self, pod: Object, candidate: Object, link: Link) -> str:
        """Return the digest that the candidate would have if it were made now.

        That the target runs another agent by now, or has tokens for other Secrets, makes no
        difference. Raises VnodeError like `build`.
        """
        override = self._overrides.choose(pod, link)
        held = chaperons.is_held(candidate)
        return candidate_forms.digest(
            self._anew(pod, candidate, link, override, allowed=False, finalizer=held)
        )

    def rebuild(self, pod: Object, chaperon: Object, link: Link) -> Object:
        """Return what the chaperon of a pod that runs would be now, by the rules that it has.

        Raises ConfigError if these cannot be known.
        """
        override = self._overrides.recorded(pod, chaperon, link)
        return self._anew(pod, chaperon, link, override, allowed=True, finalizer=True)

    def _anew(
        self,
        pod: Object,
        chaperon: Object,
        link: Link,
        override: Override | None,
        *,
        allowed: bool,
        finalizer: bool,
    ) -> Object:
        """Build a chaperon that exists as it would be now, with the tokens that it has."""
        return chaperons.build(
            pod,
            self.identity,
            str(link.target),
            manifests=self._manifests,
            allowed=allowed,
            finalizer=finalizer,
            source_api=link.options.source_api,
            tokens=chaperons.tokens_of(chaperon),
            override=override,
            priorities=link.priorities,
            storage_classes=link.options.storage_classes,
        )
