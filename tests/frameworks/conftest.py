"""One fleet for all frameworks: their operators run in c1, which sends pods to real nodes.

Targets c2 and c3 have a kubelet each, Services and names. Neither has heard of any framework.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from hack.fleetlib.fleet import LocalFleet
from tests import kit
from tests.clients import c1, c2, c3, source
from tests.fleets import clusters
from tests.frameworks.controllers import JobController
from tests.kit import Fleet
from vnode.api import kinds
from vnode.kube.client import Client

__all__ = ["c1", "c2", "c3", "fleet", "source"]

_WORDS = ["c1", "c2", "c3", "--nodes", "0", "--real-node", "c2,c3", "--services", "--agents"]
_WORDS += ["--connect", "c1:c2", "--connect", "c1:c3"]


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield three clusters, connected in namespace default."""
    with clusters(tmp_path_factory, *_WORDS, prepare=lambda new: new.opt_in("c1")) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def operators(fleet: Fleet) -> Callable[..., None]:
    """Return what has some operators run in c1; those of other tests run on."""

    def run(*wanted: JobController) -> None:
        for controller in wanted:
            if controller.program not in LocalFleet(fleet.folder).state().cluster("c1").processes:
                controller.locate()
                controller.serve_kinds(fleet, "c1")
                controller.start(fleet, "c1")

    return run


@pytest.fixture
async def targets(c2: Client, c3: Client) -> AsyncIterator[dict[str, Client]]:
    """Yield the targets by name; nothing is left of a test in them."""
    found = {"c2": c2, "c3": c3}
    yield found
    for client in found.values():
        for kind in (kinds.POD_CHAPERONS, kinds.PODS):
            await kit.until_gone(client, kind, "default")
