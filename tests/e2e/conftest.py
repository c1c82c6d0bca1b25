"""One fleet for all e2e tests: c1 sends pods to c2 and c3, with agents and candidate schedulers."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests import audit_lines, kit
from tests.clients import c1, c2, c3, source
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import kinds
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.kubeconfig import Kubeconfig

__all__ = ["c1", "c2", "c3", "fleet", "source"]


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield three clusters, connected in namespace default.

    If $VNODE_TEST_FLEET names the folder of a fleet, yield that one instead, and let it run on.
    """
    if folder := os.environ.get("VNODE_TEST_FLEET"):
        fleet = Fleet(Path(folder))
        fleet.opt_in("c1")
        yield fleet
        return

    words = ("c1", "c2", "c3", "--nodes", "3", "--agents")
    with started(tmp_path_factory, *words, "--connect", "c1:c2", "--connect", "c1:c3") as fleet:
        yield fleet
        of_nobody = list(filter(audit_lines.is_of_nobody, audit_lines.written(fleet)))

    assert not of_nobody, "the agents do not know on whose behalf they did this"


@pytest.fixture
async def as_source(source: Client) -> AsyncIterator[Client]:
    """Yield a client with the credentials of c1's Target: it may do in c2 what c1 may do."""
    secret = await source.get(kinds.SECRETS, "vnode-target-c2", "default")
    kubeconfig = base64.b64decode(secret["data"]["config"])
    async with Client(
        endpoint.from_kubeconfig(Kubeconfig.parse(kubeconfig)), name="c1 in c2"
    ) as client:
        yield client


@pytest.fixture(autouse=True)
async def _clean(fleet: Fleet) -> AsyncIterator[None]:
    """Clean the source and the targets after each test, so that the next finds nothing left."""
    yield
    async with fleet.client("c1") as source:
        for kind in (kinds.DEPLOYMENTS, kinds.JOBS, kinds.PODS):
            query = {"propagationPolicy": "Background"}
            await source.request("DELETE", kind.path("default"), query=query)

        await kit.until_gone(source, kinds.PODS, "default")
        for name in ("c2", "c3"):
            await kit.until_one(source, kinds.TARGETS, name, "default", kit.is_ready)

    for name in ("c2", "c3"):
        async with fleet.client(name) as target:
            await kit.until_gone(target, kinds.POD_CHAPERONS, "default")
