"""A source whose target comes from an inventory, upgraded and taken back: its node stays Ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from hack.fleetlib.agents import AGENTS, THIS, VnodeTree
from tests import kit
from tests.fleets import SOURCE, TARGET, started
from tests.upgrades import new_pods, witness
from tests.upgrades.releases import ReleasedFleet
from vnode.api import kinds
from vnode.kube.client import Client


@pytest.fixture(scope="module")
def inventoried(
    tmp_path_factory: pytest.TempPathFactory, version_before: VnodeTree
) -> Iterator[ReleasedFleet]:
    """Yield a source of the version before, with a target of this one that a profile names."""
    with started(tmp_path_factory, SOURCE, TARGET, "--nodes", "1") as fleet:
        found = ReleasedFleet(fleet)
        found.start(TARGET, THIS)
        found.start(SOURCE, version_before, with_inventory=True)
        found.profile(SOURCE, TARGET)
        yield found


@pytest.fixture
async def clients(inventoried: ReleasedFleet) -> AsyncIterator[tuple[Client, Client]]:
    async with AsyncExitStack() as stack:
        source, target = [
            await stack.enter_async_context(inventoried.fleet.client(name))
            for name in (SOURCE, TARGET)
        ]
        yield source, target


@pytest.mark.timeout(900)
async def test_a_target_of_an_inventory_stays_while_its_source_is_replaced(
    inventoried: ReleasedFleet, clients: tuple[Client, Client], version_before: VnodeTree
) -> None:
    source, target = clients
    await source.create(kinds.PODS, kit.pod("first"), "default")
    await kit.until_running(source, "first")
    async with witness.watching(source, target) as seen:
        await seen.guard()
        for number, tree in enumerate((THIS, version_before, THIS)):
            await asyncio.to_thread(inventoried.install, SOURCE, tree)
            await asyncio.to_thread(inventoried.replace, SOURCE, AGENTS[0], tree)
            pods = [await source.create(kinds.PODS, kit.pod(f"new-{number}"), "default")]
            await new_pods.until_running(source, target, pods)
            await new_pods.end(source, target, pods)
            assert not seen.harm, f"{tree.folder}: {seen.harm}"
