"""Maintains in the webhook configuration what only the agents know: their CA, and their paths.

`vnode install` leaves the CA bundle empty, since the agents make their CA. Every replica sets it,
and restores it after somebody has changed or replaced the configuration.

So it is with the secret at the end of the paths (`vnode.api.webhook_paths`). Where there is no
bundle yet, nobody is called, and both are set at once. A configuration that has a bundle and other
paths has just been installed again, by an upgrade or a way back to an agent that knows no secret:
it is left alone for some minutes, in which replicas come and go. Then the agents are called at the
new path, by the address that the API server uses, as often as to meet each replica; if any does not
know it, nothing is changed (docs/decisions/0097).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vnode.api import cures, kinds, objects, webhook_paths
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, NotFound, VnodeError
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import authority, keypairs, renewal, webhook_call
from vnode.runtime.certs.authority import Authority
from vnode.telemetry import audit

CONFIGURATION: Final = "vnode"
"""The name of the MutatingWebhookConfiguration."""

QUIET: Final = 300.0  # seconds for which paths without our secret are left alone
_RETRY: Final = 5.0  # seconds

log = logging.getLogger(__name__)


class TrustedWebhook:
    """Keeps our CA and our paths in a MutatingWebhookConfiguration.

    `key` returns the key that all agents share.
    """

    def __init__(
        self,
        client: Client,
        source: Authority,
        key: Callable[[], bytes],
        clock: Clock,
        name: str = CONFIGURATION,
    ) -> None:
        self.trusted = asyncio.Event()  # set once the bundle is right
        self._client = client
        self._authority = source
        self._key = key
        self._clock = clock
        self._name = name
        self._other_since: float | None = None  # since when paths have not had our secret

    async def run(self) -> None:
        """Repair bundle and paths whenever they or the CA change, until cancelled."""
        changed = asyncio.Event()
        self._authority.subscribe(changed.set)
        informer = Informer.of_object(self._client, kinds.MUTATING_WEBHOOKS, self._name)
        await renewal.keep_object(informer, self._reconcile, changed)

    async def _reconcile(self) -> float | None:
        try:
            return await self._repair()
        except VnodeError as error:
            log.warning("webhook configuration %s: %s", self._name, error)
            return _RETRY

    async def _repair(self) -> float | None:
        try:
            configuration = await self._client.get(kinds.MUTATING_WEBHOOKS, self._name)
        except NotFound as error:
            self.trusted.clear()
            raise ConfigError(f"the configuration does not exist: {cures.REPAIR}") from error

        secret = webhook_paths.secret_of(self._key())
        if patch := trust_patch(configuration, self._authority.bundle, secret):
            await self._patch(patch)
            log.info("set the CA bundle of webhook configuration %s", self._name)

        self.trusted.set()
        return await self._keep_paths(configuration, secret)

    async def _keep_paths(self, configuration: objects.Object, secret: str) -> float | None:
        """Put our secret into the paths when it is time; return the seconds until it may be."""
        patch = path_patch(configuration, secret)
        now = self._clock.monotonic()
        if not patch:
            self._other_since = None
            return None

        if self._other_since is None:
            self._other_since = now

        left = self._other_since + QUIET - now
        if left > 0:
            return left

        self._other_since = now
        if why := await self._unreached(configuration, secret):
            log.warning("the paths of webhook configuration %s stay: %s", self._name, why)
            return QUIET

        await self._patch(patch)
        log.info("changed the paths of webhook configuration %s", self._name)
        return None

    async def _unreached(self, configuration: objects.Object, secret: str) -> str:
        """Return why not all replicas answer at paths with the secret; "" if they do."""
        first = (configuration.get("webhooks") or [{}])[0].get("clientConfig") or {}
        return await webhook_call.failure(first, secret, self._authority.bundle)

    async def _patch(self, patch: objects.Objects) -> None:
        with audit.on_behalf_of(audit.AGENT):
            await self._client.json_patch(kinds.MUTATING_WEBHOOKS, self._name, patch)


def trust_patch(configuration: objects.Object, bundle: bytes, secret: str = "") -> objects.Objects:
    """Build the JSON patch that makes all webhooks trust the bundle; empty if they do.

    A bundle with more CAs than ours is left alone: another replica may have a newer CA. Webhooks
    without a bundle are called by nobody, and get their paths with it.
    """
    wanted = set(keypairs.parse_bundle(bundle))
    encoded = authority.secret_of("", "", {"ca": bundle})["data"]["ca"]
    patch: objects.Objects = []
    for number, webhook in enumerate(configuration.get("webhooks") or ()):
        config = webhook.get("clientConfig") or {}
        held = authority.data_of({"data": config}, "caBundle")
        if not wanted <= set(keypairs.parse_bundle(held)):
            path = f"/webhooks/{number}"
            patch.append({"op": "test", "path": f"{path}/name", "value": webhook.get("name")})
            patch.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": encoded})
            if not config.get("caBundle"):
                patch += _renaming(number, config, secret)

    return patch


def path_patch(configuration: objects.Object, secret: str) -> objects.Objects:
    """Build the JSON patch that gives the paths of all webhooks that are called that secret."""
    return [
        operation
        for number, webhook in enumerate(configuration.get("webhooks") or ())
        if (config := webhook.get("clientConfig") or {}).get("caBundle")
        for operation in _renaming(number, config, secret)
    ]


def _renaming(number: int, config: objects.Object, secret: str) -> objects.Objects:
    """Return the operations that give one webhook its path, from the one that it has now."""
    address = webhook_paths.address_of(config)
    plain, held = webhook_paths.split(address)
    if held is None or held == secret:
        return []

    member = "url" if config.get("url") else "service/path"
    path = f"/webhooks/{number}/clientConfig/{member}"
    return [
        {"op": "test", "path": path, "value": address},
        {"op": "replace", "path": path, "value": f"{plain}/{secret}"},
    ]
