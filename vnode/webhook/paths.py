"""Knows by which paths the webhook is called, and that is nobody's business but the API server's.

Answered are the paths that the webhook configuration names, those that it named until a moment ago,
and those that the agents will have it name. So nothing is refused while a configuration is
installed again, which takes the secret off, or the key is another one. Whoever calls another path
is told that there is none, before a byte of the body is read.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable
from typing import Final

from vnode.api import kinds, webhook_paths
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs.webhook_bundle import CONFIGURATION

_GRACE: Final = 30.0  # seconds in which API servers may call what a configuration named before
_LOOKS: Final = 1.0  # seconds between two looks at the configuration because of an unknown path
_PATIENCE: Final = 2.0  # seconds for such a look

log = logging.getLogger(__name__)


class ServedPaths:
    """Tells whether a path is one of the webhook's. `key` returns the key that all agents share."""

    def __init__(
        self,
        client: Client,
        key: Callable[[], bytes],
        clock: Clock,
        name: str = CONFIGURATION,
    ) -> None:
        self._client = client
        self._key = key
        self._clock = clock
        self._name = name
        self._named: set[str] = set()  # secrets in the configuration
        self._former: dict[str, float] = {}  # until when each is answered that was in it
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")

    async def run(self) -> None:
        """Follow the configuration until cancelled."""
        informer = Informer.of_object(self._client, kinds.MUTATING_WEBHOOKS, self._name)
        informer.subscribe(lambda _old, new: self.observe(new or {}))
        await informer.run()

    def observe(self, configuration: Object) -> None:
        """Note what a configuration names."""
        named, now = webhook_paths.secrets_in(configuration), self._clock.monotonic()
        self._former = {secret: end for secret, end in self._former.items() if end > now}
        self._former |= dict.fromkeys(self._named - named, now + _GRACE)
        self._named = named

    async def are_served(self, path: str) -> bool:
        """Tell whether the API server may call that path.

        It may know of a change before we do: so what could be a path of ours has the configuration
        looked at, once a second at most.
        """
        plain, secret = webhook_paths.split(path)
        if secret is None or plain not in webhook_paths.PLAIN:
            return False

        if not self._is_known(secret):
            await self._look()

        return self._is_known(secret)

    def _is_known(self, secret: str) -> bool:
        now = self._clock.monotonic()
        former = (each for each, end in self._former.items() if end > now)
        known = (webhook_paths.secret_of(self._key()), *self._named, *former)
        return any(hmac.compare_digest(secret.encode(), each.encode()) for each in known)

    async def _look(self) -> None:
        """Read the configuration, unless that was done a moment ago; many callers wait for one."""
        async with self._looking:
            now = self._clock.monotonic()
            if now - self._looked_at < _LOOKS:
                return

            self._looked_at = now
            try:
                async with asyncio.timeout(_PATIENCE):
                    found = await self._client.get(kinds.MUTATING_WEBHOOKS, self._name)
            except (VnodeError, TimeoutError) as error:
                log.debug("the webhook configuration %s: %s", self._name, error)
            else:
                self.observe(found)
