"""Deletes the chaperons that no pod has a use for: losers of a candidate phase, and orphans.

A loser is on another target than the one its pod was bound to; an orphan's pod is gone. Each is
deleted in its own target, at that target's pace: keys are (virtual node, key of the pod), and a
target that does not answer holds up no other, nor the pods that have moved on. A chaperon is an
orphan only if the API server of the source itself says that its pod is not there.

A target that ran vnode may run Admiralty now, which does not know the finalizer that vnode there
takes off. So in a target without vnode it is taken off here, once a chaperon has been deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, NotFound, Unreachable
from vnode.api.identity import parent_key
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.pods import chaperons
from vnode.pods.source import proxy_state
from vnode.pods.source.asked_pods import DELETED, AskedPods
from vnode.runtime.controller import Controller
from vnode.runtime.link import MOST_ALIKE, OTHERS_INDEX, PARENT_KEY_INDEX, Link
from vnode.runtime.links import Links
from vnode.telemetry import audit

_RETRY_DELAY: Final = 30.0  # seconds, after a refused deletion, or for a pod that we do not see
_AT_ONCE: Final = 8  # deletions under way in one target

log = logging.getLogger(__name__)


class _Place(NamedTuple):
    """The chaperons of one pod in one target."""

    node: str
    pod: str


class ChaperonGC:
    """Runs in the leader; `find` returns the proxy pod of a key, as far as it is known.

    `released` is called with that key before the finalizer is taken off a chaperon of that pod.
    """

    def __init__(
        self,
        client: Client,
        links: Links,
        find: Callable[[str], Object | None],
        clock: Clock,
        released: Callable[[str], None] = lambda _key: None,
    ) -> None:
        self._client = client
        self._asked = AskedPods(client, clock)
        self._released = released
        self._links = links
        self._find = find
        self._controller: Controller[_Place] = Controller(
            "chaperon-gc",
            self._reconcile,
            subject=lambda place: audit.subject(kinds.PODS, place.pod, find(place.pod)),
            workers=_AT_ONCE,
            lane=lambda place: place.node,
            namespace=lambda place: objects.key_namespace(place.pod),
        )

    async def run(self) -> None:
        """Delete until cancelled; proxy pods must be known."""
        await self._controller.run()

    def left(self, node: str, namespace: str) -> int:
        """Count the pods of a namespace whose chaperons in a target wait for their deletion."""
        return self._controller.waiting(node, namespace)

    def on_pod(self, key: str) -> None:
        """Check all chaperons of a pod that has changed, or is gone."""
        for link in self._links.covering(objects.split_key(key)[0]):
            self._check(link, key)

    def on_chaperon(self, link: Link, chaperon: Object) -> None:
        """Check the chaperons of the pod that this one names."""
        self._check(link, parent_key(chaperon))

    def _check(self, link: Link, key: str) -> None:
        if not self._client.scope.covers(objects.split_key(key)[0]):
            return  # nobody here may ask for its pods

        if self._suspects(link, key) or self._abandoned(link, key):
            self._controller.add(_Place(link.node_name, key))

    def _suspects(self, link: Link, key: str) -> list[Object]:
        """List the chaperons of a pod there that are not, or no longer, its own."""
        pod = self._find(key)
        return [
            chaperon
            for chaperon in _some(link, PARENT_KEY_INDEX, key)
            if not objects.is_terminating(chaperon)
            and (
                proxy_state.is_loser(chaperon, pod, link.node_name)
                or proxy_state.is_orphan(chaperon, pod)
            )
        ]

    @staticmethod
    def _abandoned(link: Link, key: str) -> list[Object]:
        """List the chaperons of a pod there that end, and that nobody there lets go of.

        Those that another Target of ours has sent to this cluster are among them.
        """
        if not link.lacks_vnode:
            return []

        indexes = (PARENT_KEY_INDEX, OTHERS_INDEX)
        found = (c for index in indexes for c in _some(link, index, key))
        return [c for c in found if objects.is_terminating(c) and chaperons.is_held(c)]

    async def _release(self, link: Link, chaperon: Object, key: str) -> None:
        """Take vnode's finalizer off, in place of the agent that has left.

        Kubernetes then deletes the delegate, which the source may not.
        """
        kept = objects.finalizers_without(chaperon, keys.DELEGATE_FINALIZER)
        log.info("chaperon %s ends in %s, without vnode", objects.key(chaperon), link.target)
        self._released(key)
        with suppress(NotFound):
            await link.client.patch(
                kinds.POD_CHAPERONS,
                objects.name(chaperon),
                objects.finalizers_patch(chaperon, kept),
                objects.namespace(chaperon),
            )

    async def _reconcile(self, place: _Place) -> float | None:
        link = self._links.get(place.node)
        if link is None or not link.answers:
            return None  # when it answers again, its chaperons are reconciled

        later: float | None = None
        try:
            for chaperon in self._abandoned(link, place.pod):
                await self._release(link, chaperon, place.pod)
        except (ApiError, Unreachable) as error:
            log.info("a chaperon of %s stays in %s: %s", place.pod, link.target, error)
            later = _RETRY_DELAY

        if (soonest := await self._delete_suspects(link, place.pod)) is not None:
            return soonest

        is_crowd = len(_some(link, PARENT_KEY_INDEX, place.pod)) == MOST_ALIKE
        return _RETRY_DELAY if is_crowd else later

    async def _delete_suspects(self, link: Link, key: str) -> float | None:
        """Delete the chaperons of a pod there that are not its own; return when to look again."""
        later: float | None = None
        pod: Object | None = None
        has_asked = False
        for chaperon in self._suspects(link, key):
            if self._asked.was_deleted(link, chaperon):
                later = DELETED
                continue

            if proxy_state.is_orphan(chaperon, self._find(key)):
                if not has_asked:
                    if wait := self._asked.wait(link, key):
                        return wait

                    # Once for all of them: they are older than the answer, and so is their pod.
                    pod, has_asked = await self._asked.pod(link, key), True

                if pod is not None and proxy_state.is_of(chaperon, pod):
                    later = (
                        _RETRY_DELAY  # no event tells of one that goes before an informer sees it
                    )
                    continue

            try:
                await link.client.discard(kinds.POD_CHAPERONS, chaperon)
            except (ApiError, Unreachable) as error:
                log.info("chaperon %s stays in %s: %s", objects.key(chaperon), link.target, error)
                return _RETRY_DELAY

            self._asked.deleted(link, chaperon)

        if not has_asked:
            self._asked.forget(link, key)

        return later


def _some(link: Link, index: str, key: str) -> Objects:
    """Return as many as are looked at; where there are more, these have their turn as others go."""
    return link.chaperons.store.by_index(index, key, MOST_ALIKE)
