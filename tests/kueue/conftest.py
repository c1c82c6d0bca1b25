"""One fleet for all tests with Kueue: it runs in c1, which sends pods to c2 and c3.

The agent of c1 answers Kueue's admission checks, and keeps the clusters of MultiKueue; its virtual
nodes leave out what others use. Each test says how many GPUs nodes of targets have (`rooms`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest

from hack.fleetlib import agents
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.tools import binaries
from tests import inventory, kit
from tests.clients import c1, c2, c3, source
from tests.fleets import clusters
from tests.kit import Fleet
from tests.kueue import gpus, queues
from tests.kueue.gpus import Rooms
from tests.kueue.installation import JOBSET, KUEUE, NAMESPACE
from vnode.api import kinds
from vnode.kube.client import Client

__all__ = ["c1", "c2", "c3", "fleet", "source"]

_WORDS = ["c1", "c2", "c3", "--nodes", "2", "--agents", "--bare", "c1"]
_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield three clusters, connected in namespace default, with Kueue in c1."""
    KUEUE.locate()
    with clusters(tmp_path_factory, *_WORDS, prepare=start) as fleet:
        yield fleet


def start(fleet: Fleet) -> None:
    """Start Kueue and an agent in c1, and connect its targets."""
    fleet.kubectl("c1", "create", "namespace", NAMESPACE)
    for controller in (KUEUE, JOBSET):
        controller.serve_kinds(fleet, "c1")

    fleet.kubectl("c1", "create", "-f", "-", input=json.dumps(inventory.crd()))
    KUEUE.start(fleet, "c1")
    local = LocalFleet(fleet.folder)
    place = local.site("c1")
    agents.install(place)
    for role in ("vnode-kueue", "vnode-multikueue"):
        bind_role(fleet, "c1", role)

    config = {
        "kueue": {
            "placementCheck": True,
            "allocatableWithoutOthers": True,
            "multiKueue": [
                {"name": "listed", "targets": ["default/c3", "default/c2"]},
                {"name": "of-set", "targetSet": "clouds"},
                {
                    "name": "profiled",
                    "targets": [f"{NAMESPACE}/worker"],
                    "access": "ClusterProfile",
                },
            ],
        }
    }
    agents.start_agents(fleet.folder, place, config=config)
    scheduler = binaries.locate(["kube-scheduler"])["kube-scheduler"]
    agents.start_candidate_scheduler(fleet.folder, place, scheduler)
    for target in ("c2", "c3"):
        agents.connect(place, local.site(target))

    fleet.opt_in("c1")


def bind_role(fleet: Fleet, cluster: str, role: str) -> None:
    """Give the agent of a cluster the rights of a ClusterRole that is bound to nobody."""
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": "vnode", "name": "vnode"}],
    }
    fleet.kubectl(cluster, "apply", "-f", "-", input=json.dumps(binding))


@pytest.fixture
def rooms(source: Client, c2: Client, c3: Client) -> Rooms:
    """Return what gives each of the two nodes of c2 and of c3 so many GPUs."""

    async def give(first: tuple[int, int], second: tuple[int, int] = (0, 0)) -> None:
        await gpus.give(source, {"c2": (c2, first), "c3": (c3, second)})

    return give


@pytest.fixture(scope="session")
def jobset(fleet: Fleet) -> None:
    """Have JobSet's controller run in c1."""
    if "jobset" not in LocalFleet(fleet.folder).state().cluster("c1").processes:
        JOBSET.start(fleet, "c1")


@pytest.fixture(autouse=True)
async def _clean(source: Client, c2: Client, c3: Client) -> AsyncIterator[None]:
    """Clean all clusters after each test, so that the next finds nothing left."""
    yield
    await queues.remove_jobs(source)
    for target in (c2, c3):
        await target.request("DELETE", kinds.PODS.path("default"))
        for kind in (kinds.POD_CHAPERONS, kinds.PODS):
            await kit.until_gone(target, kind, "default")

    await queues.remove_queues(source)
