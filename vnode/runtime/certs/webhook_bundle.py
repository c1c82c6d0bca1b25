"""Maintains the CA bundle in the webhook configuration, by which the API server trusts us.

`vnode install` leaves it empty, since the agents make their CA. Every replica sets it, and restores
it after somebody has changed or replaced the configuration.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from vnode.api import cures, kinds, objects
from vnode.api.errors import ConfigError, NotFound, VnodeError
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import authority, keypairs, renewal
from vnode.runtime.certs.authority import Authority

_RETRY: Final = 5.0  # seconds

log = logging.getLogger(__name__)


class TrustedWebhook:
    """Keeps our CA in the bundle of a MutatingWebhookConfiguration."""

    def __init__(self, client: Client, source: Authority, name: str = "vnode") -> None:
        self.trusted = asyncio.Event()  # set once the bundle is right
        self._client = client
        self._authority = source
        self._name = name

    async def run(self) -> None:
        """Repair the bundle whenever it or the CA changes, until cancelled."""
        changed = asyncio.Event()
        self._authority.subscribe(changed.set)
        informer = Informer.of_object(self._client, kinds.MUTATING_WEBHOOKS, self._name)
        await renewal.keep_object(informer, self._reconcile, changed)

    async def _reconcile(self) -> float | None:
        try:
            await self._repair()
        except VnodeError as error:
            log.warning("the CA bundle of webhook configuration %s: %s", self._name, error)
            return _RETRY

        return None

    async def _repair(self) -> None:
        try:
            configuration = await self._client.get(kinds.MUTATING_WEBHOOKS, self._name)
        except NotFound as error:
            self.trusted.clear()
            raise ConfigError(f"the configuration does not exist: {cures.REPAIR}") from error

        patch = trust_patch(configuration, self._authority.bundle)
        if patch:
            await self._client.request(
                "PATCH",
                kinds.MUTATING_WEBHOOKS.path(None, self._name),
                body=patch,
                content_type="application/json-patch+json",
            )
            log.info("set the CA bundle of webhook configuration %s", self._name)

        self.trusted.set()


def trust_patch(configuration: objects.Object, bundle: bytes) -> objects.Objects:
    """Build the JSON patch that makes all webhooks trust the bundle; empty if they do.

    A bundle with more CAs than ours is left alone: another replica may have a newer CA.
    """
    wanted = set(keypairs.parse_bundle(bundle))
    secret = authority.secret_of("", "", {"ca": bundle})["data"]["ca"]
    patch: objects.Objects = []
    for number, webhook in enumerate(configuration.get("webhooks") or ()):
        held = authority.data_of({"data": webhook.get("clientConfig")}, "caBundle")
        if not wanted <= set(keypairs.parse_bundle(held)):
            path = f"/webhooks/{number}"
            patch.append({"op": "test", "path": f"{path}/name", "value": webhook.get("name")})
            patch.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": secret})

    return patch
