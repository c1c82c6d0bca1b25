"""The token of a Target renews itself on real API servers, with no more rights than it takes."""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import background, kit
from tests.fleets import SOURCE, TARGET, Result, vnode
from tests.kit import Fleet
from tests.rights import holder
from tests.shifted_clock import ShiftedClock
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube import account_tokens, endpoint
from vnode.kube.client import Client
from vnode.kube.endpoint import Trust
from vnode.kube.events import EventRecorder
from vnode.kube.kubeconfig import Kubeconfig
from vnode.runtime.links import Links
from vnode.targets import expiry
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister

_SECRET = "vnode-target-c2"


@dataclass(frozen=True)
class Renewing:
    """A namespace of c1 that is connected to c2 by a token of ten minutes; no agent runs."""

    fleet: Fleet
    source: Client
    target: Client
    namespace: str

    def connect(self, *words: str, lifetime: str = "10m") -> Result:
        """Run `vnode connect` for the namespace of the test."""
        files = ("--source", self.fleet.kubeconfig(SOURCE))
        given = ("--cluster-name", "c1", "--token-lifetime", lifetime, *words)
        if "--target" not in words:
            given += ("--target", str(self.fleet.kubeconfig(TARGET)))

        return vnode("connect", *files, "--namespace", self.namespace, *given)

    async def secret(self) -> Object:
        return await self.source.get(kinds.SECRETS, _SECRET, self.namespace)

    async def kubeconfig(self) -> bytes:
        return base64.b64decode((await self.secret())["data"]["config"])

    async def token(self) -> str:
        return str(kubeconfigs.token_in(await self.kubeconfig()))

    async def agent(self) -> Client:
        """Return a client with the rights of the agent, as installed and connected."""
        return await self.holder(SOURCE, self.source, "vnode", "vnode")

    async def holder(self, cluster: str, client: Client, namespace: str, name: str) -> Client:
        """Return a client with the rights of a service account."""
        return await holder(self.fleet, cluster, client, namespace, name)

    @asynccontextmanager
    async def leading(self, ahead: float) -> AsyncIterator[Client]:
        """Lead targets by an agent whose clock is so many seconds ahead."""
        async with await self.agent() as agent:
            clock, targets = ShiftedClock(SystemClock(), ahead), TargetLister(agent, limit=1000)
            identity, events = Identity("c1", "u"), EventRecorder(agent, "vnode")
            controller = TargetController(
                *(agent, identity, targets, Links()), clock=clock, trust=lambda _key: Trust()
            )
            work = (targets.run(), controller.run(), controller.lead(events), events.run())
            async with background.running(*work):
                yield agent


@pytest.fixture
async def renewing(fleet: Fleet, installation: None) -> AsyncIterator[Renewing]:
    """Yield both clusters, which have vnode's kinds and rights."""
    assert vnode("install", "--kubeconfig", fleet.kubeconfig(TARGET)).code == 0
    async with fleet.client(SOURCE) as source, fleet.client(TARGET) as target:
        name = f"renew-{uuid.uuid4().hex[:8]}"
        for client in (source, target):
            await kit.new_namespace(client, name)

        yield Renewing(fleet, source, target, name)
        for left in await source.list(kinds.TARGETS, name):
            await source.delete(kinds.TARGETS, objects.name(left), name)


def condition(target: Object) -> Object:
    return objects.condition(target, "CredentialsLast") or {}


async def may(client: Client, verb: str, resource: str, namespace: str, name: str) -> bool:
    resource, _slash, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    review = {"spec": {"resourceAttributes": attributes}}
    answer = await client.create(kinds.SELF_SUBJECT_ACCESS_REVIEWS, review)
    return bool(objects.status(answer)["allowed"])


async def test_account_and_agent_may_do_what_renewal_takes_and_no_more(renewing: Renewing) -> None:
    done = renewing.connect()
    assert done.code == 0, done.err
    assert "Warning" not in done.out
    assert "the source's agent renews it before" in done.out
    space = renewing.namespace
    reached = endpoint.from_kubeconfig(
        Kubeconfig.parse(await renewing.kubeconfig(), kubeconfigs.CONTEXT)
    )
    async with Client(reached, name="c2") as account:
        assert await may(account, "create", "serviceaccounts/token", space, "c1")
        assert not await may(account, "create", "serviceaccounts/token", space, "default")
        assert not await may(account, "get", "serviceaccounts", space, "c1")

    async with await renewing.agent() as agent:
        assert await may(agent, "patch", "secrets", space, _SECRET)
        assert not await may(agent, "patch", "secrets", space, "another")
        assert not await may(agent, "update", "secrets", space, _SECRET)
        assert not await may(agent, "delete", "secrets", space, _SECRET)


async def test_a_token_that_is_due_is_replaced_and_the_new_one_works(renewing: Renewing) -> None:
    renewing.connect()
    before, text = await renewing.secret(), await renewing.kubeconfig()
    old = await renewing.token()
    version = objects.resource_version(before)
    async with renewing.leading(ahead=500):
        await kit.until_one(
            renewing.source,
            kinds.SECRETS,
            _SECRET,
            renewing.namespace,
            lambda secret: objects.resource_version(secret) != version,
        )
        new = await renewing.token()
        assert new != old
        assert (await renewing.kubeconfig()).replace(new.encode(), old.encode()) == text
        life = kubeconfigs.lifetime(new) or (0, 0)
        assert life[1] - life[0] == 600
        found = await kit.until_one(
            renewing.source, kinds.TARGETS, "c2", renewing.namespace, lambda t: bool(condition(t))
        )
        assert "vnode renews it on" in condition(found)["message"]

    # The former token works until its end, for requests that are under way with it.
    for kubeconfig in (text, await renewing.kubeconfig()):
        reached = endpoint.from_kubeconfig(Kubeconfig.parse(kubeconfig, kubeconfigs.CONTEXT))
        async with Client(reached, name="c2") as account:
            assert await may(account, "create", "serviceaccounts/token", renewing.namespace, "c1")

    again = renewing.connect()
    assert "issued" not in again.out
    assert await renewing.token() == new


async def test_a_target_that_cannot_be_renewed_says_so_and_connecting_again_mends_it(
    renewing: Renewing,
) -> None:
    """As with a connection that an earlier version has made: no right, no annotation."""
    renewing.connect("--no-renew")
    old, space = await renewing.token(), renewing.namespace
    note = {"metadata": {"annotations": {"vnode.dev/renew-token": "10m"}}}
    await renewing.source.patch(kinds.SECRETS, _SECRET, note, space)
    async with renewing.leading(ahead=500):
        found = await kit.until_one(
            renewing.source,
            kinds.TARGETS,
            "c2",
            space,
            lambda target: condition(target).get("reason") == "NotRenewed",
        )
        assert condition(found)["status"] == "False"
        assert "may not ask for its own tokens in the target" in condition(found)["message"]
        assert "run vnode connect again" in condition(found)["message"]
        assert await renewing.token() == old
        await kit.until_event(renewing.source, space, "reason=NotRenewed")
        done = renewing.connect()
        assert done.code == 0, done.err
        await kit.until_one(
            renewing.source,
            kinds.TARGETS,
            "c2",
            space,
            lambda target: condition(target).get("reason") == "Lasting",
        )

    assert await renewing.token() != old


async def test_without_renewal_nobody_gets_a_right(renewing: Renewing) -> None:
    done = renewing.connect("--no-renew")
    assert "connect again before, to renew it" in done.out
    for client in (renewing.source, renewing.target):
        assert not await client.list(kinds.ROLES, renewing.namespace)

    assert not objects.annotations(await renewing.secret())


async def test_who_may_not_give_the_rights_connects_all_the_same(
    renewing: Renewing, tmp_path: Path
) -> None:
    """An editor with Sources in the target: may make accounts' tokens, and no roles."""
    space = renewing.namespace
    meta = {"namespace": space, "name": "editor"}
    await renewing.target.create(kinds.SERVICE_ACCOUNTS, {"metadata": meta})
    sources = {
        "apiGroups": ["multicluster.admiralty.io"],
        "resources": ["sources"],
        "verbs": ["get", "create", "patch"],
    }
    accounts = {
        "apiGroups": [""],
        "resources": ["serviceaccounts", "serviceaccounts/token"],
        "verbs": ["get", "create"],
    }
    look = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
    role = {"metadata": meta, "rules": [sources, accounts, look]}
    await renewing.target.create(kinds.ROLES, role)
    await renewing.target.create(
        kinds.ROLE_BINDINGS,
        {
            "metadata": meta,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "editor",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "editor", "namespace": space}],
        },
    )
    granted = await account_tokens.request(renewing.target, space, "editor", {})
    reach, _name = kubeconfigs.read(renewing.fleet.kubeconfig(TARGET))
    file = tmp_path / "editor"
    file.write_bytes(kubeconfigs.build(reach, granted.text, space))
    done = renewing.connect("--target", str(file), "--name", "c2")
    assert done.code == 0, done.err
    assert "Warning: the token will not be renewed: may not apply Role" in done.out
    assert "in the target" in done.out


async def test_rights_go_with_what_they_are_about(renewing: Renewing) -> None:
    renewing.connect()
    space = renewing.namespace
    await renewing.target.delete(kinds.SOURCES, "c1", space)
    await renewing.source.delete(kinds.SECRETS, _SECRET, space)
    for client in (renewing.source, renewing.target):
        for kind in (kinds.ROLE_BINDINGS, kinds.ROLES):
            await kit.until_gone(client, kind, space)


async def test_a_tenant_cannot_have_a_secret_written_that_is_not_marked(
    renewing: Renewing,
) -> None:
    """Whoever may write Targets and no Secrets names another one's kubeconfig."""
    renewing.connect("--no-renew")
    before = await renewing.secret()
    async with renewing.leading(ahead=590):
        found = await kit.until_one(
            renewing.source,
            kinds.TARGETS,
            "c2",
            renewing.namespace,
            lambda target: condition(target).get("reason") == "EndingSoon",
        )
        assert "run vnode connect again" in condition(found)["message"]

    assert await renewing.secret() == before
    claims = expiry.claims(await renewing.token())
    assert claims["sub"] == f"system:serviceaccount:{renewing.namespace}:c1"
    async with await renewing.agent() as agent:
        with pytest.raises(Denied):
            await agent.patch(kinds.SECRETS, _SECRET, {"data": {}}, renewing.namespace)
