"""The clusters of a run: a source, an honest target and a hostile one, with agents and Targets.

Each Target has a namespace and a token of its own, so that a request shows on whose behalf it was
sent. Agents are processes; all else is here.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import yaml

from tests import certificates
from tests.apiserver.http_server import HTTPServer
from tests.apiserver.server import APIServer
from tests.fuzz import agents, measuring, typed
from tests.fuzz.agents import AgentProcess, FuzzFinding
from tests.fuzz.players import NODE, TargetPlayers
from tests.fuzz.rules import RequestRules
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.listeners import subscription_scope

CANARY: Final = "canary"
TENANT: Final = "tenant"
OTHER: Final = "other"  # of the honest target, where another source has its grant
HOSTILE: Final = tuple(f"hostile-{number}" for number in range(4))
_MANIFESTS: Final = Path(__file__).parents[2] / "vnode/manifests"
_CLUSTERS: Final = ("source", "honest", "hostile")


class FuzzEnvironment:
    """Everything that there is in a run."""

    def __init__(
        self, folder: Path, dice: random.Random, *, callback_limit: float = measuring.LIMIT
    ) -> None:
        clock = SystemClock()
        self.servers = {
            name: APIServer(name, clock, seed=number) for number, name in enumerate(_CLUSTERS)
        }
        self.source, self.honest, self.hostile = self.servers.values()
        self.rules = RequestRules(
            {
                "agent-source": None,
                "agent-honest": None,
                "canary-honest": frozenset({CANARY}),
                "tenant-honest": frozenset({TENANT}),
                "tenant-hostile": frozenset({TENANT}),
                **{f"{name}-hostile": frozenset({name}) for name in HOSTILE},
            }
        )
        users = {user: user for user in self.rules.places}
        self.http_servers = {
            name: HTTPServer(server, users, self.rules.see) for name, server in self.servers.items()
        }
        self.agents: dict[str, AgentProcess] = {}
        self.wrong: list[FuzzFinding] = []  # what feeders have found
        self.reached: Counter[str] = Counter()  # how far inputs have come
        self._folder = folder
        self._callback_limit = callback_limit
        self._network = f"127.{dice.randrange(60, 250)}.{dice.randrange(250)}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve the clusters, and run their agents."""
        async with AsyncExitStack() as stack:
            for http_server in self.http_servers.values():
                await http_server.start()
                stack.push_async_callback(http_server.stop)

            self._prepare()
            for number, name in enumerate(("honest", "source")):
                address = f"{self._network}.{number + 1}"
                url = self.http_servers[name].url
                agent = AgentProcess(
                    name,
                    url,
                    f"agent-{name}",
                    address,
                    self._folder,
                    callback_limit=self._callback_limit,
                )
                self.agents[name] = agent
                stack.push_async_callback(agent.stop)
                await agent.start()

            honest = self.agents["honest"]
            self.calls = await stack.enter_async_context(
                self.agents["source"].client(certificate=False)
            )
            session = await stack.enter_async_context(honest.client(certificate=True))
            self.players = TargetPlayers(
                self.honest, session, f"https://{honest.address}:9444/bind"
            )
            self.players.follow()
            stack.push_async_callback(self.players.stop)
            yield

    def findings(self) -> list[FuzzFinding]:
        """Return what was wrong since the last time."""
        found, self.wrong = self.wrong, []
        found += self.rules.take()
        for agent in self.agents.values():
            found += agent.findings()

        return found

    async def happens(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, for at most that time; tell whether it does."""
        changed = asyncio.Event()
        with subscription_scope():
            for server in (self.source, self.honest):
                server.store.changed.add(lambda _kind, _change: changed.set())

            try:
                async with asyncio.timeout(seconds):
                    while not condition():
                        changed.clear()
                        await changed.wait()
            except TimeoutError:
                return condition()

        return True

    def add_target(self, namespace: str, cluster: str) -> None:
        """Make a Target with its Secret."""
        config = agents.kubeconfig(self.http_servers[cluster].url, f"{namespace}-{cluster}")
        data = {"config": base64.b64encode(agents.written(config)).decode()}
        metadata = {"name": cluster, "namespace": namespace}
        self.source.add(kinds.SECRETS, {"metadata": metadata, "type": "Opaque", "data": data})
        spec = {"kubeconfigSecret": {"name": cluster}}
        self.source.add(kinds.TARGETS, {"metadata": metadata, "spec": spec})

    def forget_past(self) -> None:
        """Let the servers forget what was; they would not fit into memory."""
        for server in self.servers.values():
            server.requests.clear()
            server.compact()

    def _prepare(self) -> None:
        webhook = yaml.safe_load((_MANIFESTS / "webhook.yaml").read_text())
        for server in (self.source, self.honest):
            server.add(kinds.MUTATING_WEBHOOKS, webhook)
            server.admit(typed.refuse)

        for server in self.servers.values():
            for name in ("vnode", "bystander", CANARY, TENANT, OTHER, *HOSTILE):
                labels = {keys.WEBHOOK_NAMESPACE_LABEL[0]: keys.WEBHOOK_NAMESPACE_LABEL[1]}
                server.add(kinds.NAMESPACES, {"metadata": {"name": name, "labels": labels}})
                server.add(
                    kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}}
                )

        authority = certificates.issue("clients", ca=True).pem.decode()
        self.source.add(
            kinds.CONFIG_MAPS,
            {
                "metadata": {
                    "name": "extension-apiserver-authentication",
                    "namespace": "kube-system",
                },
                "data": {"client-ca-file": authority},
            },
        )
        amounts = {"cpu": "1000", "memory": "1000Gi", "pods": "10000"}
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        for server in (self.honest, self.hostile):
            status = {"capacity": amounts, "allocatable": amounts, "conditions": ready}
            server.add(kinds.NODES, {"metadata": {"name": NODE}, "status": status})

        system = self.hostile.find(kinds.NAMESPACES, "kube-system") or {}
        annotations = {
            keys.AGENT_VERSION: "0",
            keys.CLUSTER_NAME: "hostile",
            keys.STREAMS: "vnode",
            keys.CLUSTER_UID: objects.uid(system),
        }
        self.hostile.add(
            kinds.CLUSTER_SUMMARIES,
            {
                "metadata": {"name": keys.SUMMARY_NAME, "annotations": annotations},
                "capacity": amounts,
                "allocatable": amounts,
            },
        )
        self.add_target(CANARY, "honest")
        self.add_target(TENANT, "honest")
        for name in HOSTILE:
            self.add_target(name, "hostile")
