"""A namespace with AuthTokenRequests on real API servers, and leaders that carry them out.

The fixtures that make one are in `issuing_fixtures`.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests import background, kit
from tests.apiserver import links as target_links
from tests.kit import Fleet
from tests.rights import bind, until_may
from tests.shifted_clock import ShiftedClock
from vnode.api import kinds, objects
from vnode.api.authors import RecordedAuthors
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.issuing.controller import TokenIssuing
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.kube.kubeconfig import Kubeconfig
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets import token_renewal
from vnode.targets.target_lister import TargetLister

JOBS = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "create"]}]
REQUEST = "queue"
AUTHORS = RecordedAuthors(lambda: bytes(range(32)), SystemClock().now)


@dataclass(frozen=True)
class Issuing:
    """A namespace of c1 in which alice, a service account, has tokens of c2 issued.

    `agent` has the rights of the agent in c1, `remote` those of the Target's account in c2.
    """

    fleet: Fleet
    source: Client
    target: Client
    agent: Client
    remote: Client
    alice: Client
    namespace: str

    @property
    def queues(self) -> str:
        """The namespace of the account in c2, which is not there at first."""
        return f"{self.namespace}-queues"

    async def allow_alice(self, rules: list[Object]) -> None:
        name = f"alice-{uuid.uuid4().hex[:6]}"
        await grant(self.source, name, rules, self.namespace, "alice")

    async def request(self, client: Client, name: str = REQUEST, **changes: object) -> Object:
        spec = {
            "targetRef": {"kind": "ClusterTarget", "name": self.namespace},
            "serviceAccountName": "queue",
            "serviceAccountNamespace": self.queues,
            "roles": [{"namespace": self.namespace, "name": "jobs", "rules": JOBS}],
            "expirationSeconds": 600,
            **changes,
        }
        body = {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}
        return await client.create(kinds.AUTH_TOKEN_REQUESTS, body)

    async def until(self, type_: str, name: str = REQUEST, *, status: str = "") -> Object:
        """Wait until a request has a condition, of that status if one is given; return it."""

        def is_so(obj: Object) -> bool:
            condition = objects.condition(obj, type_) or {}
            return bool(condition) and status in ("", condition["status"])

        kind = kinds.AUTH_TOKEN_REQUESTS
        found = await kit.until_one(self.source, kind, name, self.namespace, is_so)
        return objects.condition(found, type_) or {}

    async def found(self) -> Object:
        return await self.source.get(kinds.AUTH_TOKEN_REQUESTS, REQUEST, self.namespace)

    async def secret(self) -> Object:
        return await self.source.get(kinds.SECRETS, REQUEST, self.namespace)

    async def until_deleted(self) -> None:
        """Wait until the requests of the namespace are gone, and see that nothing of them is left
        but namespaces."""
        await kit.until_gone(self.source, kinds.AUTH_TOKEN_REQUESTS, self.namespace)
        target = self.target
        for kind in (kinds.ROLES, kinds.ROLE_BINDINGS):
            assert await target.list(kind, self.namespace) == []

        accounts = await target.list(kinds.SERVICE_ACCOUNTS, self.queues)
        assert "queue" not in map(objects.name, accounts)
        space = await target.get(kinds.NAMESPACES, self.queues)
        assert objects.status(space)["phase"] == "Active"
        with pytest.raises(NotFound):
            await self.secret()

    @asynccontextmanager
    async def leading(
        self,
        ahead: float = 0,
        *,
        longest: int = 86400,
        chance: Callable[[str], float] = token_renewal.chance,
    ) -> AsyncIterator[Link]:
        """Have a leader, whose clock is so many seconds ahead, carry out requests.

        Its link to c2 answers, unless a test has it probed.
        """
        links, lister = Links(), TargetLister(self.agent)
        link = link_of(self.remote, self.namespace)
        links.add(link)
        namespaces = Informer(self.agent, kinds.NAMESPACES)
        controller = TokenIssuing(
            *(self.agent, links, lister, AUTHORS, namespaces, EventRecorder(self.agent, "vnode")),
            longest=longest,
            clock=ShiftedClock(SystemClock(), ahead),
            chance=chance,
        )
        async with background.running(lister.run(), namespaces.run()):
            await lister.wait_synced()
            async with background.running(controller.run()):
                yield link


async def grant(
    client: Client, name: str, rules: list[Object], namespace: str, account: str
) -> None:
    """Let a service account do that, everywhere; the API server knows of it then."""
    known = {"apiGroups": ["test.vnode.dev"], "resources": [name], "verbs": ["get"]}
    role = {"metadata": {"name": name}, "rules": [*rules, known]}
    await client.create(kinds.CLUSTER_ROLES, role)
    await bind(client, name, name, namespace, account)
    user = f"system:serviceaccount:{namespace}:{account}"
    await until_may(client, user, f"get test.vnode.dev/{name}")


def issued(secret: Object) -> Client:
    """Return a client with the token in the Secret of a request."""
    text = base64.b64decode(secret["data"]["kubeconfig"])
    return Client(endpoint.from_kubeconfig(Kubeconfig.parse(text)), name="issued")


def link_of(client: Client, name: str) -> Link:
    """Return the link of a ClusterTarget, as if it had been probed."""
    return target_links.link_by(client, TargetKey("", name), Identity("c1", "u"), SystemClock())


def to_issue(env: Issuing) -> list[Object]:
    return [
        {
            "apiGroups": ["multicluster.admiralty.io"],
            "resources": ["clustertargets"],
            "resourceNames": [env.namespace],
            "verbs": ["issue"],
        },
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
    ]
