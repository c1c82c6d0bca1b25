"""`vnode install --namespaces` on a real API server: the rights that it gives, and takes away."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from tests.fleets import SOURCE, Result, vnode
from tests.kit import Fleet, new_namespace
from tests.rights import holder, may, policy_refusal, until_may
from vnode.api import keys, kinds, objects
from vnode.cli import scoped_rights
from vnode.kube.client import Client

RBAC = "rbac.authorization.k8s.io"
AGENT = "system:serviceaccount:vnode:vnode"


@pytest.fixture
async def teams(fleet: Fleet, client: Client) -> AsyncIterator[list[str]]:
    """Yield two namespaces; the agent has its rights in all again when the test ends."""
    yield [await new_namespace(client, f"team-{uuid.uuid4().hex[:8]}") for _ in range(2)]
    last = install(fleet, "--all-namespaces")
    assert last.code == 0, last.err


def install(fleet: Fleet, *words: str) -> Result:
    return vnode("install", "--kubeconfig", fleet.kubeconfig(SOURCE), *words)


async def roles(client: Client) -> set[tuple[str, str]]:
    """Return kind and namespace of what there is in this mode only."""
    return {
        (kind.kind, objects.namespace(obj))
        for kind in scoped_rights.KINDS
        for obj in await client.list(kind, label_selector=f"{scoped_rights.LABEL}=true")
    }


async def test_rights_are_in_the_named_namespaces_until_they_are_named_no_more(
    fleet: Fleet, client: Client, teams: list[str]
) -> None:
    first, second = teams
    done = install(fleet, "--namespaces", ",".join(teams))
    assert done.code == 0, done.err
    for namespace in teams:
        await until_may(client, AGENT, f"get /secrets {namespace}")

    assert not await may(client, AGENT, "get /secrets default")
    assert not await may(client, AGENT, "list /secrets")
    assert not await may(client, AGENT, "list /pods")
    assert await may(client, AGENT, "list /nodes")

    again = install(fleet)
    assert f"the agent stays held to {first}, {second}" in again.out
    objs = [line for line in again.out.splitlines() if "/" in line.split()[0]]
    assert {line.split()[-1] for line in objs if "held to" not in line} == {"unchanged"}

    less = install(fleet, "--namespaces", first)
    assert f"rolebinding/{second}/vnode deleted" in less.out
    assert not await may(client, AGENT, f"get /secrets {second}")
    assert await may(client, AGENT, f"get /secrets {first}")
    assert ("Role", second) not in await roles(client)

    assert install(fleet, "--all-namespaces").code == 0
    assert await roles(client) == set()
    await until_may(client, AGENT, "list /secrets")
    hook = await client.get(kinds.MUTATING_WEBHOOKS, "vnode")
    assert "In" not in str(hook["webhooks"][0]["namespaceSelector"]["matchExpressions"]).split("'")


async def test_the_agent_may_change_nothing_of_its_rights_but_finalizers(
    fleet: Fleet, client: Client, teams: list[str]
) -> None:
    done = install(fleet, "--namespaces", ",".join(teams))
    assert done.code == 0, done.err
    path = kinds.ROLE_BINDINGS.path(teams[0], "vnode")
    await until_may(client, AGENT, f"patch {RBAC}/rolebindings {teams[0]} vnode")
    async with await holder(fleet, SOURCE, client, "vnode", "vnode") as agent:
        somebody = [{"kind": "User", "name": "somebody", "apiGroup": RBAC}]
        refusal = await policy_refusal(agent, "PATCH", path, {"subjects": somebody})
        assert "binds the roles of Sources and ClusterSources only" in refusal

        labels = {"metadata": {"labels": {scoped_rights.LABEL: None}}}
        assert await policy_refusal(agent, "PATCH", path, labels) == refusal

        body = {"metadata": {"finalizers": [keys.WORK_LEFT]}}
        await agent.patch(kinds.ROLE_BINDINGS, "vnode", body, teams[0])
        kept = await client.get(kinds.ROLE_BINDINGS, "vnode", teams[0])
        assert objects.finalizers(kept) == [keys.WORK_LEFT]


async def test_a_namespace_that_does_not_exist_is_named_with_the_cure(
    fleet: Fleet, teams: list[str]
) -> None:
    done = install(fleet, "--namespaces", f"{teams[0]},nowhere")
    assert done.code == 1
    assert "create the namespace, or leave it out of --namespaces" in done.err
