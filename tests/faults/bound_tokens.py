"""Tokens of a source's account in a target of an inventory: replaced and revoked, one by one."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress

from hack.fleetlib.inventory import NAMESPACE
from tests import kit
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import AlreadyExists, Denied
from vnode.cli import kubeconfigs
from vnode.kube import account_tokens, endpoint
from vnode.kube.client import Client
from vnode.kube.kubeconfig import Kubeconfig


class BoundTokens:
    """Tokens of the source's account in a target, each of which ends with a Secret there."""

    def __init__(self, fleet: Fleet, source: Client, target: Client, name: str = "c2") -> None:
        self._fleet = fleet
        self._name = name
        self._source = source
        self._target = target
        self._secrets: list[str] = []  # of the tokens, the last one is that of the present token

    async def begin(self) -> str:
        """Revoke the token that the fleet was made with; return the one in its place."""
        present = await self._present()
        account = {"metadata": {"name": "c1", "namespace": NAMESPACE}}
        await self._target.delete(kinds.SERVICE_ACCOUNTS, "c1", NAMESPACE)
        with suppress(AlreadyExists):  # the agent there makes it too, for its ClusterSource
            await self._target.create(kinds.SERVICE_ACCOUNTS, account)

        token = await self.replace()
        await self._until_refused(present)
        return token

    async def _present(self) -> str:
        secret = await self._source.get(kinds.SECRETS, self._name, NAMESPACE)
        return base64.b64decode(secret["data"]["token"]).decode()

    async def replace(self) -> str:
        """Have the plugin find a new token; return it."""
        name = f"token-{len(self._secrets)}"
        bound = {"metadata": {"name": name, "namespace": NAMESPACE}}
        uid = objects.uid(await self._target.create(kinds.SECRETS, bound))
        reference = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid}
        spec = {"expirationSeconds": 3600, "boundObjectRef": reference}
        granted = await account_tokens.request(self._target, NAMESPACE, "c1", spec)
        data = {"token": base64.b64encode(granted.text.encode()).decode()}
        await self._source.patch(kinds.SECRETS, self._name, {"data": data}, NAMESPACE)
        self._secrets.append(name)
        return granted.text

    async def revoke_former(self, token: str) -> None:
        """End the token before the present one, and return when the target refuses it."""
        await self._target.delete(kinds.SECRETS, self._secrets[-2], NAMESPACE)
        await self._until_refused(token)

    async def _until_refused(self, token: str) -> None:
        reach, _name = kubeconfigs.read(self._fleet.kubeconfig(self._name))
        text = kubeconfigs.build(reach, token, "default")
        async with Client(
            endpoint.from_kubeconfig(Kubeconfig.parse(text)), name=self._name
        ) as former:
            await until_refused(former)


async def until_refused(client: Client) -> None:
    """Wait for a cluster to refuse a token: it remembers for some seconds whose it was."""
    async with asyncio.timeout(kit.PATIENCE):
        while not await _is_refused(client):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.5)


async def _is_refused(client: Client) -> bool:
    """Tell whether the credentials of a client are nobody's."""
    try:
        await client.list(kinds.PODS, "default")
    except Denied as error:
        return error.status == 401

    return False
