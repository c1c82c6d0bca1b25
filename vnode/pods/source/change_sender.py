"""The source's side of a change: from a bound proxy to its chaperon, and a refusal back.

Called whenever a bound proxy is reconciled. Whether there is news is seen from what the informers
keep, without a request; only then is the whole pod fetched. What the target refuses comes back on
the chaperon, and is said on the proxy in an Event.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, Denied, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.pods import changes, chaperons
from vnode.pods.chaperons import Parent
from vnode.runtime.expectations import Expectations
from vnode.runtime.links import Link

_REFUSED: Final = 30.0  # seconds until a change that was refused is tried again


class ChangeSender:
    """Sends changes of proxies; `echoes` are those of writes to chaperons."""

    def __init__(
        self, client: Client, parent: Parent, events: EventRecorder, expectations: Expectations
    ) -> None:
        self._client = client
        self._parent = parent
        self._events = events
        self._expectations = expectations
        self._said: dict[str, str] = {}  # by key of the proxy: the refusal that its Event told

    def forget(self, key: str) -> None:
        """The proxy is gone."""
        self._said.pop(key, None)

    async def send(self, proxy: Object, candidate: Object, link: Link) -> float | None:
        """Bring the chaperon up to date with its proxy; when to look again if it was refused.

        A target that is out of reach is left alone: its return has every pod looked at again.
        """
        if not link.health.healthy or self._expectations.pending(
            expectation_key(link, candidate), candidate
        ):
            return None

        try:
            if changes.is_news(proxy, candidate, self._parent):
                await self._send(proxy, candidate, link)
        except ConfigError as error:
            self._say(proxy, str(error))
            return None
        except (Denied, Invalid) as error:
            self._say(proxy, f"target {link.target} refused the change: {error.message}")
            return _REFUSED

        if (refusal := objects.annotations(candidate).get(keys.REFUSED)) is not None:
            self._say(proxy, f"target {link.target} refused the change: {refusal}")
        else:
            self._said.pop(objects.key(proxy), None)

        return None

    async def _send(self, proxy: Object, candidate: Object, link: Link) -> None:
        try:
            live = await self._client.get(kinds.PODS, objects.name(proxy), objects.namespace(proxy))
        except NotFound:
            return

        if objects.uid(live) != objects.uid(proxy):
            return

        built = chaperons.build(
            live,
            self._parent,
            str(link.target),
            allowed=True,
            finalizer=True,
            source_api=link.options.source_api,
        )
        body = changes.chaperon_patch(live, built, candidate)
        if not body:
            return

        try:
            after = await link.client.patch(
                kinds.POD_CHAPERONS, objects.name(candidate), body, objects.namespace(candidate)
            )
        except NotFound:
            return

        self._expectations.expect(expectation_key(link, candidate), candidate, after)

    def _say(self, proxy: Object, message: str) -> None:
        """Once for each message: reconciling again is no news."""
        key = objects.key(proxy)
        if self._said.get(key) == message:
            return

        self._said[key] = message
        self._events.event(about(proxy), WARNING, "ChangeRefused", message)


def expectation_key(link: Link, candidate: Object) -> str:
    """A chaperon among those of all targets."""
    return f"{link.node_name}/{objects.key(candidate)}"
