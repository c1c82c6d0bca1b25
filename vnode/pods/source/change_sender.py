"""Sends changes of a bound proxy to its chaperon, and reports refusals on the proxy.

Called whenever a bound proxy is reconciled. What the informers keep shows, without a request,
whether there is news; only then is the whole pod fetched. Whoever changes pods all the time has to
wait (`vnode.runtime.change_limiter`). A refusal of the target comes back on the chaperon, and
becomes an Event of the proxy.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.pods import changes
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.runtime import write_limits
from vnode.runtime.change_limiter import ChangeLimiter
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link

_REFUSED: Final = 30.0  # seconds until a change that was refused is tried again


class ChangeSender:
    """Patches chaperons with the changes of their proxies."""

    def __init__(
        self,
        client: Client,
        factory: ChaperonFactory,
        events: EventRecorder,
        expectations: Expectations,
        clock: Clock,
    ) -> None:
        self._client = client
        self._factory = factory
        self._events = events
        self._expectations = expectations
        self._limiter: ChangeLimiter[str] = ChangeLimiter(
            "changes",
            "podchaperons",
            (write_limits.CHANGES, write_limits.CHANGES_OF_NAMESPACE),
            clock,
            namespace=objects.key_namespace,
        )
        self._refusals: dict[str, str] = {}  # key of the proxy -> message of its last Event

    def forget(self, key: str) -> None:
        """Drop what is known of a proxy that is gone."""
        self._refusals.pop(key, None)
        self._limiter.forget(key)

    async def send(
        self, proxy: Object, candidate: Object, link: Link, *, at_once: bool = False
    ) -> float | None:
        """Bring the chaperon up to date with its proxy.

        Return when to try again if it was refused, or if the pod is changed too often; with
        `at_once` it waits for nothing. A target that is out of reach is left alone: when it answers
        again, every pod is reconciled.
        """
        if not link.health.healthy or self._expectations.pending(
            expectation_key(link, candidate), candidate
        ):
            return None

        key = objects.key(proxy)
        try:
            if not changes.is_news(proxy, candidate, self._factory.identity):
                self._limiter.settle(key)
            elif (wait := self._limiter.wait(key)) and not at_once:
                return wait
            else:
                self._limiter.sent(key)
                await self._send(proxy, candidate, link)
        except ConfigError as error:
            self._warn(proxy, str(error))
            return None
        except (Denied, Invalid) as error:
            self._refusals.pop(key, None)  # it was tried again, which is news
            self._warn(proxy, f"target {link.target} refused the change: {error.message}")
            return _REFUSED

        if (refusal := objects.annotations(candidate).get(keys.REFUSED)) is not None:
            self._warn(proxy, f"target {link.target} refused the change: {refusal}")
        else:
            self._refusals.pop(key, None)

        return None

    async def _send(self, proxy: Object, candidate: Object, link: Link) -> None:
        try:
            live = await self._client.get(kinds.PODS, objects.name(proxy), objects.namespace(proxy))
        except NotFound:
            return

        if objects.uid(live) != objects.uid(proxy):
            return

        built = self._factory.rebuild(live, candidate, link)
        body = changes.chaperon_patch(live, built, candidate)
        if not body:
            return

        key = expectation_key(link, candidate)
        await self._expectations.patch(
            link.client, kinds.POD_CHAPERONS, candidate, body, key=key, if_unchanged=True
        )

    def _warn(self, proxy: Object, message: str) -> None:
        """Record an Event, once for each message: reconciling again is no news."""
        key = objects.key(proxy)
        if self._refusals.get(key) == message:
            return

        self._refusals[key] = message
        self._events.event(about(proxy), WARNING, "ChangeRefused", message)


def expectation_key(link: Link, candidate: Object) -> str:
    """Return the key of a chaperon among those of all targets."""
    return f"{link.node_name}/{objects.key(candidate)}"
