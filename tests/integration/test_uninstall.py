"""`vnode uninstall` in a target without an agent, while a source goes on sending pods to it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.fleets import TARGET, vnode
from tests.kit import Fleet
from tests.rights import holder
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied
from vnode.cli.remove.report import RemovalReport
from vnode.cli.remove.uninstall import UninstallOptions, uninstall
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.nodes import summary
from vnode.nodes.summary import SummaryWriter
from vnode.runtime.supervisor import supervise
from vnode.targets import source_rbac


def install(fleet: Fleet) -> None:
    done = vnode("install", "--kubeconfig", fleet.kubeconfig(TARGET))
    assert done.code == 0, done.err


@pytest.fixture
async def target(fleet: Fleet) -> AsyncIterator[Client]:
    """Yield an administrator of c2, where vnode is installed before the test and after it."""
    install(fleet)
    async with fleet.client(TARGET) as target:
        yield target
        await kit.until_gone(target, kinds.NAMESPACES, field_selector="metadata.name=vnode")

    install(fleet)


@pytest.fixture
async def namespace(target: Client) -> AsyncIterator[str]:
    """Yield a fresh namespace in c2, and remove its chaperons in the end."""
    name = await kit.new_namespace(target, f"test-{uuid.uuid4().hex[:10]}")
    yield name
    for chaperon in await target.list(kinds.POD_CHAPERONS, name):
        free = {"metadata": {"finalizers": None}}
        await target.patch(kinds.POD_CHAPERONS, objects.name(chaperon), free, name)
        await target.discard(kinds.POD_CHAPERONS, chaperon)


@pytest.fixture
async def source(fleet: Fleet, target: Client, namespace: str) -> AsyncIterator[Client]:
    """Yield a client that a Source of that namespace lets in.

    There is no agent to do what the Source asks for, so the fixture does it.
    """
    body = {"metadata": {"name": "c1"}, "spec": {"serviceAccountName": "c1"}}
    grant = source_rbac.parse(await target.create(kinds.SOURCES, body, namespace))
    await target.create(kinds.SERVICE_ACCOUNTS, source_rbac.service_account(grant))
    for kind, binding in source_rbac.bindings(grant):
        await target.create(kind, binding)

    async with await holder(fleet, TARGET, target, namespace, "c1") as source:
        yield source


@pytest.fixture
async def agent(fleet: Fleet, target: Client) -> AsyncIterator[Client]:
    """Yield a client with an agent's rights."""
    async with await holder(fleet, TARGET, target, "vnode", "vnode") as agent:
        yield agent


async def send(source: Client, namespace: str, begun: asyncio.Event) -> set[str]:
    """Make chaperons for as long as that is allowed, and say so of the first; all their names."""
    sent: set[str] = set()
    while True:
        name = f"web-{len(sent)}"
        metadata = {"name": name, "finalizers": [keys.DELEGATE_FINALIZER]}
        spec = {"containers": [{"name": "main", "image": "busybox"}]}
        try:
            await source.create(
                kinds.POD_CHAPERONS, {"metadata": metadata, "spec": spec}, namespace
            )
        except Denied:  # an API server needs a moment to hear of new rights, too
            if sent:
                return sent
        else:
            sent.add(name)
            begun.set()


async def test_a_source_that_goes_on_sending_while_delegates_are_kept_leaves_no_finalizer(
    target: Client, source: Client, namespace: str
) -> None:
    begun, report = asyncio.Event(), RemovalReport(say=lambda _text: None)
    async with asyncio.timeout(kit.PATIENCE), asyncio.TaskGroup() as group:
        sending = group.create_task(send(source, namespace, begun), name="send")
        await begun.wait()
        await uninstall(
            target, UninstallOptions("vnode", keep=True, crds=False, seconds=20), report
        )

    found = await target.list(kinds.POD_CHAPERONS, namespace)
    assert {objects.name(chaperon) for chaperon in found} == await sending
    assert not any(map(objects.finalizers, found))
    assert not any(map(objects.is_terminating, found))
    assert "kept with their delegate pods, as requested" in "".join(report.left)


async def test_nothing_says_any_more_that_vnode_runs_here_though_an_agent_does(
    target: Client, agent: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source would give chaperons the finalizer of an agent that is no more."""
    monkeypatch.setattr(summary, "INTERVAL", 0)  # it would be written again at once
    report, seen = RemovalReport(say=lambda _text: None), asyncio.Event()
    summaries = Informer.of_object(target, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    summaries.subscribe(
        lambda _old, new: (
            seen.set() if keys.AGENT_VERSION in objects.annotations(new or {}) else None
        )
    )
    async with asyncio.timeout(kit.PATIENCE), supervise() as tasks:
        tasks.start(SummaryWriter(agent, "vnode", clock=SystemClock()).run(), "summary")
        tasks.start(summaries.run(), "summaries")
        await seen.wait()
        await uninstall(
            target, UninstallOptions("vnode", keep=True, crds=False, seconds=20), report
        )

        with pytest.raises(Denied):
            await agent.list(kinds.CLUSTER_SUMMARIES)

        assert not await target.list(kinds.CLUSTER_SUMMARIES)
