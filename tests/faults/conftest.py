"""Fleets for tests about failures: one a module, since each needs another kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager

import pytest

from tests.kit import Fleet
from vnode.kube.client import Client

LABEL = "multicluster-scheduler=enabled"


@contextmanager
def started(
    folders: pytest.TempPathFactory, *words: str, sources: Iterable[str] = ("c1",)
) -> Iterator[Fleet]:
    """`hack/fleet up`, taken down at the end; the webhook looks at namespace default of sources."""
    there = Fleet(folders.mktemp("fleet"))
    there.run("up", *words)
    try:
        for name in sources:
            there.kubectl(name, "label", "namespace", "default", LABEL)

        yield there
    finally:
        there.run("down")


@pytest.fixture
async def c1(fleet: Fleet) -> AsyncIterator[Client]:
    """An administrator of c1, in the fleet of the module."""
    async with fleet.client("c1") as client:
        yield client


@pytest.fixture
async def c2(fleet: Fleet) -> AsyncIterator[Client]:
    """An administrator of c2."""
    async with fleet.client("c2") as client:
        yield client


@pytest.fixture
async def c3(fleet: Fleet) -> AsyncIterator[Client]:
    """An administrator of c3."""
    async with fleet.client("c3") as client:
        yield client


@pytest.fixture
def source(c1: Client) -> Client:
    """Where c1 only sends."""
    return c1


@pytest.fixture
def target(c2: Client) -> Client:
    """Where c2 is the only target."""
    return c2
