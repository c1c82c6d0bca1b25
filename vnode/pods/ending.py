"""The end of a proxy pod: its finalizer goes when nothing of it can run any more.

A terminating proxy first has its chaperon deleted, whose own end tells that the delegate's
containers have stopped. Only then is the finalizer released. As long as the target cannot be asked,
the pod stays, because its name must not be taken while its predecessor may still run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import feedback
from vnode.pods.bound import is_daemon
from vnode.pods.mirroring import Mirror
from vnode.runtime.links import Link, Links

LOOK_AGAIN: Final = 2.0  # seconds between looks at what only a list can show


class Ending:
    """Lets terminating proxy pods go."""

    def __init__(
        self, client: Client, links: Links, mirror: Mirror, target_exists: Callable[[str], bool]
    ) -> None:
        self._client = client
        self._links = links
        self._mirror = mirror
        self._target_exists = target_exists  # by node name; True while in doubt
        # By key, the UID of a terminating pod whose chaperon was deleted with our finalizer on it:
        # when that chaperon ends, so has the delegate. Goes with the pod.
        self._held: dict[str, str] = {}

    def forget(self, key: str) -> None:
        """The pod is gone."""
        self._held.pop(key, None)

    async def end(self, proxy: Object, node_name: str | None) -> float | None:
        """Let a terminating pod go as soon as nothing of it can run any more."""
        if node_name and not is_daemon(proxy):
            link = self._links.get(node_name)
            if link is None and self._target_exists(node_name):
                return None  # the link's return wakes us

            if link is not None and link.covers(objects.namespace(proxy)):
                if not link.synced or await self._ask_to_end(proxy, link):
                    return None  # the chaperon's end wakes us

                if await self._lingers(proxy, link):
                    return LOOK_AGAIN

        if (body := feedback.without_finalizers(proxy)) is not None:
            proxy = await self._mirror.patch(proxy, body)

        if objects.metadata(proxy).get("deletionGracePeriodSeconds"):
            await self._client.discard(kinds.PODS, proxy, grace=0)

        return None

    async def leave_to_kubelet(self, proxy: Object) -> None:
        """Somebody gave the pod to a real node, whose kubelet runs and ends it; we let it go."""
        body = feedback.without_finalizers(proxy)
        if objects.is_terminating(proxy) and body is not None:
            await self._mirror.patch(proxy, body)

    async def _ask_to_end(self, proxy: Object, link: Link) -> bool:
        """Whether the pod has a chaperon; it is deleted, and reports until it is gone."""
        candidate = link.candidate(objects.uid(proxy))
        if candidate is None:
            return False

        ended: Object | None = candidate
        if not objects.is_terminating(candidate):  # the answer counts: our copy may be an old one
            ended = await link.client.discard(kinds.POD_CHAPERONS, candidate)

        if keys.DELEGATE_FINALIZER in objects.finalizers(ended or {}):
            self._held[objects.key(proxy)] = objects.uid(proxy)

        await self._mirror.feed_back(proxy, candidate, link)
        return True

    async def _lingers(self, proxy: Object, link: Link) -> bool:
        """Whether something of the pod is there that no event tells of.

        It can be a chaperon that has not come to our knowledge, or a delegate that outlives its
        chaperon, which only one without our finalizer can.
        """
        if self._held.get(objects.key(proxy)) == objects.uid(proxy):
            return False

        uid, namespace = objects.uid(proxy), objects.namespace(proxy)
        if (unseen := await link.look_for_candidate(uid, namespace)) is not None:
            await link.client.discard(kinds.POD_CHAPERONS, unseen)
            return True

        selector = f"{keys.PARENT_UID}={uid}"
        return bool(await link.client.list(kinds.PODS, namespace, label_selector=selector))
