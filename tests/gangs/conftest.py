"""A source, and three targets with forty places each: room for two gangs of sixteen and a half."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from tests.clients import source
from tests.e2e.gang_pods import offer
from tests.fleets import started
from tests.kit import Fleet
from vnode.kube.client import Client

__all__ = ["fleet", "source", "targets"]

SOURCE, TARGETS = "c1", ("c2", "c3", "c4")
PLACES = (8,) * 5  # of the nodes of a target


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    links = [word for target in TARGETS for word in ("--connect", f"{SOURCE}:{target}")]
    words = (SOURCE, *TARGETS, "--nodes", str(len(PLACES)), "--agents", *links)
    with started(tmp_path_factory, *words) as there:
        yield there


@pytest.fixture
async def targets(fleet: Fleet, source: Client) -> AsyncIterator[dict[str, Client]]:
    """Yield the clients of the targets, whose nodes have places."""
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(fleet.client(name)) for name in TARGETS}
        for name, client in clients.items():
            await offer(source, client, name, *PLACES)

        yield clients
