"""Targets by ClusterProfiles whose Secrets have kubeconfigs, read by the inventory's own plugin."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
import yaml

from tests import inventory, kit
from tests.fleets import TARGET
from tests.integration.inventoried import Inventoried, inventoried, provider
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube import account_tokens
from vnode.runtime.link import Link
from vnode.targets.profiles.config import InventoryConfig

__all__ = ["inventoried"]

PLUGIN = "kubeconfig-secretreader"


class Kubeconfigs:
    """The Secret `c2` in an inventory's namespace, with kubeconfigs of the target's users."""

    def __init__(self, inventoried: Inventoried, kubeconfig: Path) -> None:
        self._inventoried = inventoried
        self._kubeconfig: Object = yaml.safe_load(kubeconfig.read_text())

    def status(self, **config: str) -> Object:
        """Return the status of a profile; `config` says which kubeconfig it is."""
        named = {"name": "c2", "namespace": self._inventoried.namespace, **config}
        extension = {"name": inventory.EXTENSION, "extension": named}
        cluster = {**self._inventoried.access["cluster"], "extensions": [extension]}
        return {"accessProviders": [{"name": PLUGIN, "cluster": cluster}]}

    async def put(self, **users: Object) -> None:
        """Write kubeconfigs, each with its user, under these keys."""
        context = {"cluster": TARGET, "user": "fleet"}
        data = {
            key: base64.b64encode(
                yaml.safe_dump(
                    {
                        **self._kubeconfig,
                        "users": [{"name": "fleet", "user": user}],
                        "contexts": [{"name": "only", "context": context}],
                        "current-context": "only",
                    }
                ).encode()
            ).decode()
            for key, user in users.items()
        }
        metadata = {"name": "c2", "namespace": self._inventoried.namespace}
        await self._inventoried.source.apply(kinds.SECRETS, {"metadata": metadata, "data": data})

    async def token(self) -> Object:
        """Return a user with a token."""
        client, namespace = self._inventoried.target, self._inventoried.namespace
        lasting = {"expirationSeconds": 3600}
        granted = await account_tokens.request(client, namespace, "fleet", lasting)
        return {"token": granted.text}

    @property
    def certificate(self) -> Object:
        """A user with a client certificate, the administrator."""
        user: Object = self._kubeconfig["users"][0]["user"]
        assert user.keys() == {"client-certificate-data", "client-key-data"}
        return user


@pytest.fixture
async def kubeconfigs(fleet: Fleet, inventoried: Inventoried) -> Kubeconfigs:
    variables = inventoried.config.providers[-1].exec_config.env
    plugin = await asyncio.to_thread(inventory.plugin, PLUGIN)
    providers = (provider(PLUGIN, plugin, env=variables),)
    inventoried.config = InventoryConfig((inventoried.namespace,), providers)
    return Kubeconfigs(inventoried, fleet.kubeconfig(TARGET))


async def until_healthy(link: Link) -> None:
    changed = asyncio.Event()
    link.on_health(changed.set)
    while not link.health.healthy:
        await changed.wait()
        changed.clear()


async def test_a_kubeconfig_with_a_token_connects(
    inventoried: Inventoried, kubeconfigs: Kubeconfigs
) -> None:
    user = await kubeconfigs.token()
    await kubeconfigs.put(value=user)
    async with inventoried.connected(kubeconfigs.status(key="value")) as link:
        assert await link.client.authorization() == f"Bearer {user['token']}"
        assert await link.client.list(kinds.NAMESPACES)


async def test_a_kubeconfig_with_a_client_certificate_connects(
    inventoried: Inventoried, kubeconfigs: Kubeconfigs
) -> None:
    await kubeconfigs.put(value=kubeconfigs.certificate)
    async with inventoried.connected(kubeconfigs.status(key="value", context="only")) as link:
        assert await link.client.authorization() is None
        assert await link.client.list(kinds.NAMESPACES)


async def test_a_profile_that_changes_to_a_client_certificate_connects_anew(
    inventoried: Inventoried, kubeconfigs: Kubeconfigs
) -> None:
    await kubeconfigs.put(token=await kubeconfigs.token(), certificate=kubeconfigs.certificate)
    async with inventoried.connected(kubeconfigs.status(key="token")) as link:
        made: asyncio.Queue[Link] = asyncio.Queue()
        inventoried.links.subscribe(
            lambda new: made.put_nowait(new) if new.target == link.target else None,
            lambda _link: None,
        )
        assert await made.get() is link
        await inventoried.set_status("c2", kubeconfigs.status(key="certificate"))
        async with asyncio.timeout(kit.PATIENCE):
            successor = await made.get()
            await until_healthy(successor)

        assert await successor.client.authorization() is None
        assert await successor.client.list(kinds.NAMESPACES)


async def test_a_kubeconfig_that_names_a_command_is_refused_by_the_plugin(
    inventoried: Inventoried, kubeconfigs: Kubeconfigs, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    command = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    await kubeconfigs.put(value={"exec": {**command, "command": "touch", "args": [str(mark)]}})
    await inventory.installed(inventoried.source)
    await inventoried.add("c2", kubeconfigs.status(key="value"))
    async with inventoried.agent():
        found = await inventoried.until_reason("c2", "PluginFailed")
        message = (objects.condition(found, "Ready") or {})["message"]
        assert 'no authentication method found in user "fleet"' in message

    assert not mark.exists()
