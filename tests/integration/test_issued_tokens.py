"""AuthTokenRequests on real API servers: the token works for what was asked, and nothing else."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from tests import background, kit
from tests.fleets import SOURCE, TARGET
from tests.integration.test_webhook import own_address
from tests.kit import Fleet
from tests.rights import until_may
from vnode.api import keys, kinds, objects
from vnode.api.authors import RecordedAuthors
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied, Invalid, NotFound, ServerError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.cli import kubeconfigs, manifests
from vnode.issuing import rights
from vnode.issuing.config import IssuingConfig
from vnode.issuing.controller import TokenIssuing
from vnode.kube import account_tokens, endpoint
from vnode.kube.client import Client
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.certs.webhook_bundle import TrustedWebhook
from vnode.runtime.links import Link, LinkHealth, Links, TargetKey
from vnode.runtime.serving import Server
from vnode.targets.cluster_identity import Expected
from vnode.targets.connection import Connection
from vnode.targets.model import SecretReference, TargetSpec
from vnode.targets.target_lister import TargetLister
from vnode.webhook.authors import AuthorWebhook

JOBS = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "create"]}]
KEY = bytes(range(32))


@dataclass(frozen=True)
class Issuing:
    """A namespace of c1 in which alice, a service account, has tokens of c2 issued."""

    fleet: Fleet
    source: Client
    target: Client
    alice: Client
    namespace: str

    @property
    def queues(self) -> str:
        """The namespace of the account in c2, which is not there at first."""
        return f"{self.namespace}-queues"

    async def allow_alice(self, rules: list[Object]) -> None:
        name = f"alice-{uuid.uuid4().hex[:6]}"
        await grant(self.source, name, rules, self.namespace, "alice")

    async def request(self, client: Client, name: str = "queue", **changes: object) -> Object:
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

    async def until(self, type_: str, name: str = "queue") -> Object:
        """Wait until a request has a condition, and return that."""

        found = await kit.until_one(
            self.source,
            kinds.AUTH_TOKEN_REQUESTS,
            name,
            self.namespace,
            lambda obj: objects.condition(obj, type_),
        )
        return objects.condition(found, type_) or {}


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


async def bind(client: Client, name: str, role: str, namespace: str, account: str) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
    await client.create(kinds.CLUSTER_ROLE_BINDINGS, body)


async def holder(fleet: Fleet, cluster: str, client: Client, namespace: str, name: str) -> Client:
    """A client with the rights of a service account, which is made if it is not there."""
    account = {"metadata": {"name": name, "namespace": namespace}}
    await client.apply(kinds.SERVICE_ACCOUNTS, account)
    granted = await account_tokens.request(client, namespace, name, {"expirationSeconds": 3600})
    reach, _name = kubeconfigs.read(fleet.kubeconfig(cluster))
    text = kubeconfigs.build(reach, granted.text, namespace)
    return Client(endpoint.from_kubeconfig(text), name=cluster)


def link_of(client: Client, name: str) -> Link:
    """The link of a ClusterTarget, as if it had been probed."""
    key, clock = TargetKey("", name), SystemClock()
    connection = Connection(
        TargetSpec(key, SecretReference("", name, "config", ""), ""),
        client.endpoint,
        identity=Identity("c1", "u"),
        links=Links(),
        clock=clock,
        expected=Expected,
        on_cluster=lambda _uid: None,
        on_name_conflicts=lambda: None,
    )
    link = connection._make_link(client)
    link.set_health(LinkHealth(True, "Connected", "", clock.now()))
    return link


@asynccontextmanager
async def served(source: Client, agent: Client, namespace: str) -> AsyncIterator[None]:
    """Serve the webhook, as installed, with the rights of the agent."""
    address, authority = own_address(source.endpoint.url), Authority(source, namespace)
    await authority.load()
    certificate = ServingCertificate(authority, "webhook", (address,))
    app = web.Application()
    refusal = rights.refusal(agent, IssuingConfig(enabled=True))
    AuthorWebhook(RecordedAuthors(lambda: KEY), refusal).add_to(app)
    listener = Server("webhook", app, address, 0, ssl_context=await certificate.start())
    async with background.running(listener.run()):
        await listener.ready.wait()
        hook = manifests.webhook("vnode", f"https://{address}:{listener.port}")
        hook["webhooks"] = hook["webhooks"][1:]
        await source.apply(kinds.MUTATING_WEBHOOKS, hook)
        keeper = TrustedWebhook(source, authority)
        try:
            async with background.running(keeper.run()):
                await keeper.trusted.wait()
                yield
        finally:
            await source.delete(kinds.MUTATING_WEBHOOKS, "vnode")


@pytest.fixture
async def issuing(kubelet_fleet: Fleet) -> AsyncIterator[Issuing]:
    """What issues tokens runs with the rights that an operator binds, in both clusters."""
    fleet, name = kubelet_fleet, f"issue-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(fleet.client(SOURCE))
        target = await stack.enter_async_context(fleet.client(TARGET))
        for obj in (manifests.namespace("vnode"), *manifests.crds(), *manifests.rbac("vnode")):
            await source.apply(manifests.kind_of(obj), obj)

        for obj in manifests.rbac("vnode"):
            if objects.name(obj) == "vnode-issuing-target":
                await target.apply(manifests.kind_of(obj), obj)

        for client in (source, target):
            await kit.new_namespace(client, name)

        agent = await stack.enter_async_context(
            await holder(fleet, SOURCE, source, "vnode", "vnode")
        )
        alice = await stack.enter_async_context(await holder(fleet, SOURCE, source, name, "alice"))
        remote = await stack.enter_async_context(await holder(fleet, TARGET, target, name, "c1"))
        for role in ("vnode-issuing", "vnode-issued-secrets"):
            await bind(source, f"{name}-{role}", role, "vnode", "vnode")

        await bind(target, name, "vnode-issuing-target", name, "c1")
        await grant(target, f"{name}-jobs", JOBS, name, "c1")
        await source.create(
            kinds.CLUSTER_TARGETS, {"metadata": {"name": name}, "spec": {"self": True}}
        )
        links, lister = Links(), TargetLister(agent)
        links.add(link_of(remote, name))
        authors = RecordedAuthors(lambda: KEY)
        controller = TokenIssuing(agent, links, lister, authors, longest=86400, clock=SystemClock())
        await stack.enter_async_context(background.running(lister.run()))
        await lister.wait_synced()
        await stack.enter_async_context(background.running(controller.run()))
        await stack.enter_async_context(served(source, agent, name))
        requests = [
            {"apiGroups": ["vnode.dev"], "resources": ["authtokenrequests"], "verbs": ["*"]}
        ]
        world = Issuing(fleet, source, target, alice, name)
        await world.allow_alice(requests)
        await until_called(world)
        yield world
        for left in await source.list(kinds.AUTH_TOKEN_REQUESTS, name):
            await source.delete(kinds.AUTH_TOKEN_REQUESTS, objects.name(left), name)

        await kit.until_gone(source, kinds.AUTH_TOKEN_REQUESTS, name)
        await source.delete(kinds.CLUSTER_TARGETS, name)


async def until_called(world: Issuing) -> None:
    """The API server reads kinds, rights and webhooks with a delay: try until it refuses."""
    async with asyncio.timeout(30):
        while True:
            try:
                made = await world.request(world.alice, "probe")
            except Denied as error:
                if "may not issue" in str(error):
                    return
            except (ServerError, NotFound):
                pass
            else:
                await world.source.delete(
                    kinds.AUTH_TOKEN_REQUESTS, objects.name(made), world.namespace
                )

            await asyncio.sleep(0.1)


def to_issue(world: Issuing) -> list[Object]:
    return [
        {
            "apiGroups": ["multicluster.admiralty.io"],
            "resources": ["clustertargets"],
            "resourceNames": [world.namespace],
            "verbs": ["issue"],
        },
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
    ]


async def test_a_token_works_for_what_was_asked_and_nothing_else(issuing: Issuing) -> None:
    with pytest.raises(Denied, match=f"may not issue clustertargets.* named {issuing.namespace}"):
        await issuing.request(issuing.alice)

    await issuing.allow_alice([*to_issue(issuing), *JOBS])
    made = await issuing.request(issuing.alice)
    assert (
        f'"username":"system:serviceaccount:{issuing.namespace}:alice"'
        in (objects.annotations(made)[keys.AUTHOR])
    )
    assert (await issuing.until("ServiceAccountTokenRetrieved"))["status"] == "True"
    secret = await issuing.source.get(kinds.SECRETS, "queue", issuing.namespace)
    text = base64.b64decode(secret["data"]["kubeconfig"])
    async with Client(endpoint.from_kubeconfig(text), name="issued") as issued:
        assert await issued.list(kinds.JOBS, issuing.namespace) == []
        for kind, namespace in (
            (kinds.JOBS, "default"),
            (kinds.SECRETS, issuing.namespace),
            (kinds.SERVICE_ACCOUNTS, issuing.queues),
        ):
            with pytest.raises(Denied):
                await issued.list(kind, namespace)

    await deleted(issuing)


async def deleted(issuing: Issuing) -> None:
    """Delete the request, and see that nothing but namespaces is left."""
    await issuing.alice.delete(kinds.AUTH_TOKEN_REQUESTS, "queue", issuing.namespace)
    await kit.until_gone(issuing.source, kinds.AUTH_TOKEN_REQUESTS, issuing.namespace)
    target = issuing.target
    for kind in (kinds.ROLES, kinds.ROLE_BINDINGS):
        assert await target.list(kind, issuing.namespace) == []

    accounts = await target.list(kinds.SERVICE_ACCOUNTS, issuing.queues)
    assert "queue" not in map(objects.name, accounts)
    assert objects.status(await target.get(kinds.NAMESPACES, issuing.queues))["phase"] == "Active"
    with pytest.raises(NotFound):
        await issuing.source.get(kinds.SECRETS, "queue", issuing.namespace)


async def test_nobody_gives_what_they_do_not_have(issuing: Issuing) -> None:
    await issuing.allow_alice(to_issue(issuing))
    await issuing.request(issuing.alice)
    condition = await issuing.until("RoleFoundOrCreated")
    assert (condition["status"], condition["reason"]) == ("False", "AuthorMayNot")
    assert "alice may not get jobs.batch" in condition["message"]
    # The administrator has everything here, and the source's account in the target has not.
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    roles = [{"namespace": issuing.namespace, "name": "secrets", "rules": rules}]
    await issuing.request(issuing.source, "admin", roles=roles)
    condition = await issuing.until("RoleFoundOrCreated", "admin")
    assert (condition["status"], condition["reason"]) == ("False", "Forbidden")
    assert "attempting to grant RBAC permissions not currently held" in condition["message"]
    for name in ("queue", "admin"):
        with pytest.raises(NotFound):
            await issuing.source.get(kinds.SECRETS, name, issuing.namespace)


async def test_the_author_stays_who_created_it_and_the_request_what_it_was(
    issuing: Issuing,
) -> None:
    await issuing.allow_alice(to_issue(issuing))
    before = objects.annotations(await issuing.request(issuing.alice))
    forged: dict[str, Any] = {keys.AUTHOR: '{"username":"root"}', keys.AUTHOR_SIGNATURE: None}
    body = {"metadata": {"annotations": forged}}
    kind = kinds.AUTH_TOKEN_REQUESTS
    after = await issuing.alice.patch(kind, "queue", body, issuing.namespace)
    assert objects.annotations(after) == before
    changed = {"spec": {"serviceAccountName": "default"}}
    with pytest.raises(Invalid, match="cannot be changed"):
        await issuing.alice.patch(kind, "queue", changed, issuing.namespace)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"targetClusterProfile": {"name": "east"}}, "one of the two"),
        ({"targetRef": None}, "one of the two"),
        ({"serviceAccountName": "../x"}, "should match"),
        ({"roles": [{"namespace": "a", "name": "a/../b"}]}, "should match"),
        ({"clusterRoles": [{"name": f"r{i}"} for i in range(21)]}, "at most 20 items"),
        ({"clusterRoles": [{"name": "a"}, {"name": "a"}]}, "Duplicate value"),
        ({"expirationSeconds": 599}, "greater than or equal to 600"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    issuing: Issuing, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(Invalid, match=why):
        await issuing.request(issuing.source, "bad", **changes)
