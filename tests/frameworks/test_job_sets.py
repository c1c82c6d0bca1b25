"""JobSets: each pod reaches each by its name, in one target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.frameworks import members
from tests.kit import Fleet
from tests.kueue.installation import JOBSET
from tests.kueue.test_jobsets import JOBSETS
from vnode.api import keys
from vnode.api.objects import Object
from vnode.kube.client import Client

SELECTOR = "jobset.sigs.k8s.io/jobset-name=train"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NAMES = ["train-leader-0-0", "train-worker-0-0", "train-worker-0-1"]


@pytest.fixture(autouse=True)
async def _job_sets(
    source: Client, targets: dict[str, Client], operators: Callable[..., None]
) -> AsyncIterator[None]:
    operators(JOBSET)
    yield
    query = {"propagationPolicy": "Background"}
    await source.request("DELETE", JOBSETS.path("default"), query=query)


def jobset() -> Object:
    """Return a JobSet of a leader and two workers, all of which ask for each other."""
    line = members.script(*(f"{name}.train" for name in NAMES))
    template = members.template(members.container("main", line), restartPolicy="Never")
    jobs = [
        {
            "name": name,
            "template": {
                "spec": {
                    "parallelism": count,
                    "completions": count,
                    "completionMode": "Indexed",
                    "template": template,
                }
            },
        }
        for name, count in (("leader", 1), ("worker", 2))
    ]
    return {"metadata": {"name": "train"}, "spec": {"replicatedJobs": jobs}}


async def test_pods_of_a_jobset_reach_each_other_by_name(fleet: Fleet, source: Client) -> None:
    await source.create(JOBSETS, jobset(), "default")
    pods = await members.until_running(source, SELECTOR, 3)
    assert members.target_of(pods)
    for name in pods:
        assert await members.heard(fleet, name) == set(NAMES)


async def test_a_jobset_that_wants_a_target_for_each_job_gets_them(source: Client) -> None:
    made = jobset()
    made["metadata"]["annotations"] = {EXCLUSIVE: keys.TARGET_NAME}
    await source.create(JOBSETS, made, "default")
    pods = await members.until_running(source, SELECTOR, 3)
    leader = {name: pod for name, pod in pods.items() if "-leader-" in name}
    workers = {name: pod for name, pod in pods.items() if "-worker-" in name}
    assert members.target_of(leader) != members.target_of(workers)
