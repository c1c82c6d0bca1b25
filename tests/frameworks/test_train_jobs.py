"""TrainJobs of Trainer, whose runtime asks for a PodGroup of coscheduling: gangs in one target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from hack.fleetlib.tools import catalogue
from tests import kit
from tests.e2e.gang_pods import SLOT, offer
from tests.e2e.gang_watch import LONGEST, watching
from tests.frameworks import controllers, members
from tests.frameworks.installation import TRAINER
from tests.kit import Fleet
from tests.kueue.installation import JOBSET
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

RUNTIMES = Kind("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime")
JOBS = Kind("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
NAMES = [f"fit-node-0-{number}" for number in range(3)]
SELECTOR = f"{keys.POD_GROUP}=fit"


@pytest.fixture(scope="module", autouse=True)
def _trainer(fleet: Fleet, operators: Callable[..., None]) -> None:
    if "podgroups" not in fleet.kubectl("c1", "api-resources", "--output=name"):
        crd = "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"
        controllers.create_crds(fleet, "c1", catalogue.SCHEDULER_PLUGINS_MODULE, crd)

    operators(JOBSET, TRAINER)


@pytest.fixture(autouse=True)
async def _train_jobs(source: Client, targets: dict[str, Client]) -> AsyncIterator[None]:
    yield
    for kind in (JOBS, RUNTIMES):
        query = {"propagationPolicy": "Background"}
        await source.request("DELETE", kind.path("default"), query=query)

    for name, target in targets.items():
        await kit.until_gone(target, kinds.PODS, "default")
        await offer(source, target, name, 0)


def runtime(*earlier: Object) -> Object:
    """Return a runtime whose nodes ask for each other and for the master of torch.

    With `earlier` replicated jobs, the nodes are made once the last of these has ended.
    """
    line = members.script("$PET_MASTER_ADDR", *(f"{name}.fit" for name in NAMES))
    slot = {"resources": {"requests": {"cpu": "10m"}, "limits": {SLOT: "1"}}}
    template = members.template(members.container("node", line, **slot), restartPolicy="Never")
    template["metadata"]["labels"] = {"gang": "fit"}
    after = [{"name": each["name"], "status": "Complete"} for each in earlier[-1:]]
    nodes = replicated_job("node", "trainer", template)
    jobs = [*earlier, {**nodes, "dependsOn": after} if after else nodes]
    return {
        "metadata": {"name": "torch"},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "podGroupPolicy": {"coscheduling": {}},
            "template": {"spec": {"replicatedJobs": jobs}},
        },
    }


def replicated_job(name: str, step: str, template: Object) -> Object:
    """Return a part of a runtime, whose pods are of a step that Trainer knows."""
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step}
    return {
        "name": name,
        "template": {"metadata": {"labels": labels}, "spec": {"template": template}},
    }


def initializer() -> Object:
    """Return the part of a runtime that fetches a model, which is one pod."""
    container = members.container("model-initializer", "echo fetched")
    template = members.template(container, restartPolicy="Never")
    return replicated_job("model-initializer", "model-initializer", template)


TRAIN_JOB: Object = {
    "metadata": {"name": "fit"},
    "spec": {
        "runtimeRef": {"name": "torch", "kind": RUNTIMES.kind, "apiGroup": RUNTIMES.group},
        "trainer": {"numNodes": len(NAMES)},
    },
}


async def test_nodes_of_a_train_job_start_together_where_all_have_a_place(
    fleet: Fleet, source: Client, targets: dict[str, Client]
) -> None:
    for name, target in targets.items():
        await offer(source, target, name, 2)

    await source.create(RUNTIMES, runtime(), "default")
    async with watching(len(NAMES), **targets) as watch:
        await source.create(JOBS, TRAIN_JOB, "default")
        group = await kit.until_one(source, kinds.COSCHEDULING_GROUPS, "fit", "default", bool)
        assert objects.spec(group)["minMember"] == len(NAMES)

        def says_why(pods: dict[str, Object]) -> bool:
            said = [objects.condition(pod, "PodScheduled") or {} for pod in pods.values()]
            why = f"2 of 3 have a place in c3; 1 waits: Insufficient {SLOT}"
            return any(why in condition.get("message", "") for condition in said)

        await kit.until(source, kinds.PODS, says_why, namespace="default", label_selector=SELECTOR)
        assert not watch.places
        await offer(source, targets["c3"], "c3", 3)
        before = await members.until_running(source, SELECTOR, 3)
        assert watch.worst() < LONGEST

    assert members.target_of(before) == "c3"
    for name in before:
        assert await members.heard(fleet, name) == set(NAMES)

    await offer(source, targets["c2"], "c2", 4)
    lost = next(name for name in before if name.startswith(NAMES[1]))
    await source.delete(kinds.PODS, lost, "default")
    after = await members.until_back(source, SELECTOR, before, lost)
    assert members.target_of(after) == "c3"
    (back,) = after.keys() - before.keys()
    assert await members.heard(fleet, back) == set(NAMES)


async def test_an_initializer_ends_before_the_nodes_start_together(
    fleet: Fleet, source: Client, targets: dict[str, Client]
) -> None:
    for name, target in targets.items():
        await offer(source, target, name, 3)

    await source.create(RUNTIMES, runtime(initializer()), "default")
    await source.create(JOBS, TRAIN_JOB, "default")
    group = await kit.until_one(source, kinds.COSCHEDULING_GROUPS, "fit", "default", bool)
    # Trainer counts it, though it is over before there are nodes.
    assert objects.spec(group)["minMember"] == len(NAMES) + 1
    nodes = f"{SELECTOR},jobset.sigs.k8s.io/replicatedjob-name=node"
    started = await members.until_running(source, nodes, len(NAMES))
    members.target_of(started)
    for name in started:
        assert await members.heard(fleet, name) == set(NAMES)
