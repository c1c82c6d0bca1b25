"""Administrators of the clusters of a test's `fleet`; a conftest imports those that it needs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.kit import Fleet
from vnode.kube.client import Client


@pytest.fixture
async def c1(fleet: Fleet) -> AsyncIterator[Client]:
    """Yield an administrator's client of c1, the cluster that sends pods."""
    async with fleet.client("c1") as client:
        yield client


@pytest.fixture
async def c2(fleet: Fleet) -> AsyncIterator[Client]:
    """Yield an administrator's client of c2, the first target."""
    async with fleet.client("c2") as client:
        yield client


@pytest.fixture
async def c3(fleet: Fleet) -> AsyncIterator[Client]:
    """Yield an administrator's client of c3, the second target."""
    async with fleet.client("c3") as client:
        yield client


@pytest.fixture
async def c4(fleet: Fleet) -> AsyncIterator[Client]:
    """Yield an administrator's client of c4, the third target."""
    async with fleet.client("c4") as client:
        yield client


@pytest.fixture
def source(c1: Client) -> Client:
    """Return the client of c1, for tests in which c1 only sends pods."""
    return c1


@pytest.fixture
def target(c2: Client) -> Client:
    """Return the client of c2, for tests in which c2 is the only target."""
    return c2
