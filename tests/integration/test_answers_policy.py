"""The admission policy about kinds of Kueue: what the agent's token changes of their status, where
it has been given the right to answer checks of Workloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests import crds, kit
from tests.fleets import SOURCE
from tests.integration.agent_token import AgentToken
from tests.kit import Fleet
from tests.rights import bind, holder, until_may
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kueue import workloads

KINDS: Final = (kinds.WORKLOADS, kinds.ADMISSION_CHECKS)
USER: Final = "system:serviceaccount:vnode:vnode"
ROLE: Final = "vnode-kueue"
PENDING: Final = [{"name": "placement", "state": "Pending"}, {"name": "budget", "state": "Pending"}]


@pytest.fixture
async def token(fleet: Fleet, client: Client) -> AsyncIterator[AgentToken]:
    """Yield the agent's token, which may answer checks; its cluster serves them."""
    for kind in KINDS:
        await client.create(kinds.CRDS, crds.build(kind))
        await kit.until_served(client, kind)

    await bind(client, ROLE, ROLE)
    try:
        await until_may(client, USER, f"patch {kinds.KUEUE}/workloads/status default")
        async with await holder(fleet, SOURCE, client, "vnode", "vnode") as agent:
            yield AgentToken(agent)
    finally:
        await client.delete(kinds.CLUSTER_ROLE_BINDINGS, ROLE)
        for kind in KINDS:
            await client.delete(kinds.CRDS, kind.resource)
            selector = f"metadata.name={kind.resource}"
            await kit.until_gone(client, kinds.CRDS, field_selector=selector)


async def test_of_a_workload_answers_are_written_and_no_quota(
    token: AgentToken, client: Client, namespace: str
) -> None:
    kind, name = kinds.WORKLOADS, "w"
    await client.create(kind, {"metadata": {"name": name}, "spec": {"priority": 1}}, namespace)
    status: Object = {"conditions": [{"type": "QuotaReserved", "status": "False"}]}
    body = {"status": {**status, "admissionChecks": PENDING}}
    written = await client.patch(kind, name, body, namespace, subresource="status")
    admitted = {"type": "Admitted", "status": "True"}
    unchecked: list[Object] = [
        {"conditions": [{"type": "QuotaReserved", "status": "True"}]},
        {"conditions": [*status["conditions"], admitted]},
        {"conditions": None},
        {"admission": {"clusterQueue": "all"}},
        {"admissionChecks": None},
        {"admissionChecks": PENDING[:1]},
        {"admissionChecks": [*PENDING, {"name": "mine", "state": "Ready"}]},
    ]
    for each in unchecked:
        why = await token.refusal("PATCH", kind, {"status": each}, namespace, name, "status")
        assert "the answers to its checks only" in why

    ready = workloads.answer(workloads.READY, "there is room")
    now = SystemClock().now()
    checks = workloads.answered(written, frozenset({"placement"}), ready, now)
    body = objects.status_patch(written, {"admissionChecks": checks})
    await token.client.patch(kind, name, body, namespace, subresource="status")


async def test_only_checks_of_vnode_are_said_to_be_active(
    token: AgentToken, client: Client, namespace: str
) -> None:
    kind = kinds.ADMISSION_CHECKS
    active = {"status": {"conditions": [{"type": "Active", "status": "True"}]}}
    for name, controller in (("theirs", "example.com/budget"), ("ours", keys.PLACEMENT_CHECK)):
        spec = {"controllerName": controller}
        await client.create(kind, {"metadata": {"name": name}, "spec": spec})

    why = await token.refusal("PATCH", kind, active, None, "theirs", "status")
    assert "of the controller vnode.dev/placement only" in why
    await token.client.patch(kind, "ours", active, subresource="status")
