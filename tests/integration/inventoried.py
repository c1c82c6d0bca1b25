"""An inventory of clusters on real API servers: c1 has its namespace, c2 is the cluster in it."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import background, inventory, kit
from tests.fleets import SOURCE, TARGET, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli import kubeconfigs
from vnode.kube import account_tokens, endpoint
from vnode.kube.client import Client
from vnode.kube.endpoint import Trust
from vnode.kube.events import EventRecorder
from vnode.kube.kubeconfig import Kubeconfig
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets.controller import TargetController
from vnode.targets.profiles.config import (
    AccessProvider,
    ExecConfig,
    ExecVariable,
    InventoryConfig,
)
from vnode.targets.target_lister import TargetLister


@dataclass
class Inventoried:
    """An inventory's namespace in c1, and c2 with an account for whoever has its Secret in c1."""

    source: Client
    target: Client
    kubeconfig: Path
    namespace: str
    config: InventoryConfig
    access: Object
    own_access: Object
    links: Links = field(default_factory=Links)

    async def add_target(self, name: str, profile: tuple[str, str] | None = None) -> None:
        namespace, named = profile or (self.namespace, name)
        reference = {"namespace": namespace, "name": named}
        target = {"metadata": {"name": name}, "spec": {"clusterProfile": reference}}
        await self.source.create(kinds.CLUSTER_TARGETS, target)

    async def add_profile(self, name: str, status: Object, **labels: str) -> None:
        await inventory.add_profile(self.source, self.namespace, name, status, **labels)

    async def set_status(self, name: str, status: Object) -> None:
        await inventory.set_status(self.source, self.namespace, name, status)

    async def add(self, name: str, status: Object, **labels: str) -> None:
        """Create a profile, and the Target that names it."""
        await self.add_profile(name, status, **labels)
        await self.add_target(name)

    @asynccontextmanager
    async def connected(self, status: Object, **labels: str) -> AsyncIterator[Link]:
        """Connect an agent to the Target c2 by a profile with that status, and yield the link."""
        await inventory.installed(self.source)
        await self.add("c2", status, **labels)
        async with self.agent():
            await self.until_reason("c2", "Connected")
            yield self.link("c2")

    async def until_reason(self, name: str, *reasons: str) -> Object:
        return await kit.until_one(
            *(self.source, kinds.CLUSTER_TARGETS, name, ""),
            lambda target: inventory.reason(target) in reasons,
        )

    async def renew_account(self) -> str:
        """Make the account anew, which revokes all tokens; put its token into the Secret."""
        account = {"metadata": {"name": "fleet", "namespace": self.namespace}}
        with suppress(NotFound):
            await self.target.delete(kinds.SERVICE_ACCOUNTS, "fleet", self.namespace)

        await self.target.create(kinds.SERVICE_ACCOUNTS, account)
        spec = {"expirationSeconds": 3600}
        token = (await account_tokens.request(self.target, self.namespace, "fleet", spec)).text
        await self.put_token("c2", token)
        return token

    async def put_token(self, cluster: str, token: str) -> None:
        """Write the Secret that the plugin reads for a cluster of that name."""
        secret = {
            "metadata": {"name": cluster, "namespace": self.namespace},
            "data": {"token": base64.b64encode(token.encode()).decode()},
        }
        await self.source.apply(kinds.SECRETS, secret)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[TargetController]:
        """Lead targets with the rights that an installed agent has."""
        reach, _name = kubeconfigs.read(self.kubeconfig)
        text = kubeconfigs.build(reach, await agent_token(self.source), "vnode")
        async with Client(endpoint.from_kubeconfig(Kubeconfig.parse(text)), name="c1") as agent:
            uid = objects.uid(await agent.get(kinds.NAMESPACES, "kube-system"))
            targets, events = TargetLister(agent, limit=1000), EventRecorder(agent, "vnode")
            controller = TargetController(
                *(agent, Identity("c1", uid), targets, self.links),
                clock=SystemClock(),
                trust=lambda _key: Trust(),
                inventory=self.config,
            )
            work = (targets.run(), controller.run(), controller.lead(events), events.run())
            async with background.running(*work):
                yield controller

    def link(self, name: str) -> Link:
        found = self.links.get(TargetKey("", name).node_name)
        assert found is not None
        return found


async def agent_token(source: Client, seconds: int = 600) -> str:
    """Return a token of the agent that is installed in the source."""
    spec = {"expirationSeconds": seconds}
    return (await account_tokens.request(source, "vnode", "vnode", spec)).text


def provider(name: str, command: Path | str, **fields: Any) -> AccessProvider:
    return AccessProvider(name, ExecConfig(str(command), provide_cluster_info=True, **fields))


async def _permit_account(target: Client, name: str) -> None:
    """Let the account `fleet` of that namespace do everything."""
    binding = {
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": name, "name": "fleet"}],
    }
    await target.create(kinds.CLUSTER_ROLE_BINDINGS, binding)


async def _summarize(target: Client) -> None:
    """Write the ClusterSummary, as the target's agent does."""
    system = await target.get(kinds.NAMESPACES, "kube-system")
    summary = {
        "metadata": {
            "name": keys.SUMMARY_NAME,
            "annotations": {keys.CLUSTER_UID: objects.uid(system)},
        },
        "capacity": {"cpu": "1"},
        "allocatable": {"cpu": "1"},
    }
    await target.apply(kinds.CLUSTER_SUMMARIES, summary)


def _configuration(namespace: str, plugin: Path, reader: Path) -> InventoryConfig:
    """Return the agent's; the plugin looks into the namespace of the kubeconfig `reader`."""
    variable = ExecVariable("KUBECONFIG", str(reader))
    return InventoryConfig(
        (namespace,),
        (
            provider("hanging", "/bin/sleep", args=("60",)),
            provider("rubbish", "/bin/echo", args=("rubbish",)),
            provider("secretreader", plugin, env=(variable,)),
        ),
    )


@pytest.fixture
async def inventoried(fleet: Fleet, tmp_path: Path) -> AsyncIterator[Inventoried]:
    assert vnode("install", "--kubeconfig", fleet.kubeconfig(TARGET)).code == 0
    plugin = await asyncio.to_thread(inventory.secretreader)
    name = f"fleet-{uuid.uuid4().hex[:8]}"
    async with fleet.client(SOURCE) as source, fleet.client(TARGET) as target:
        for client in (source, target):
            await kit.new_namespace(client, name)

        reach = {}
        for cluster in (SOURCE, TARGET):
            reach[cluster], _name = kubeconfigs.read(fleet.kubeconfig(cluster))

        await _permit_account(target, name)
        await _summarize(target)
        reader = tmp_path / "reader"
        token = await agent_token(source, 3600)
        reader.write_bytes(kubeconfigs.build(reach[SOURCE], token, name))
        config = _configuration(name, plugin, reader)
        access, own_access = (
            inventory.access(
                reach[cluster].server,
                base64.b64encode(reach[cluster].authority or b"").decode(),
                "c2",
            )
            for cluster in (TARGET, SOURCE)
        )
        made = Inventoried(
            source, target, fleet.kubeconfig(SOURCE), name, config, access, own_access
        )
        await made.renew_account()
        await inventory.uninstall(source)
        yield made
        for left in await source.list(kinds.CLUSTER_TARGETS):
            await source.delete(kinds.CLUSTER_TARGETS, objects.name(left))

        await inventory.uninstall(source)
