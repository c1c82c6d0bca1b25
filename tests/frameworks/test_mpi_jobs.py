"""MPIJobs: launcher and workers in one target, with what the operator makes for them.

A launcher reaches its workers by ssh. The stand-ins have the key and ask for a page instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests import kit
from tests.frameworks import members
from tests.frameworks.installation import MPI_OPERATOR
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

MPI_JOBS = Kind("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
SELECTOR = "training.kubeflow.org/job-name=pi"
WORKERS = ["pi-worker-0", "pi-worker-1"]
_KEYS = "/etc/keys"
_KEY = f"test -s {_KEYS}/id_rsa && test -s {_KEYS}/authorized_keys || exit 1; "


@pytest.fixture(autouse=True)
async def _mpi_jobs(
    source: Client, targets: dict[str, Client], operators: Callable[..., None]
) -> AsyncIterator[None]:
    operators(MPI_OPERATOR)
    yield
    query = {"propagationPolicy": "Background"}
    await source.request("DELETE", MPI_JOBS.path("default"), query=query)


def mpi_job() -> Object:
    """Return an MPIJob whose launcher asks those of its hostfile, and ends when it may."""
    until_told = "until [ -e /tmp/done ]; do sleep 1; done"
    hosts = "$(cut -d ' ' -f 1 /etc/mpi/hostfile)"
    launch = _KEY + members.script(hosts, then=until_told)
    work = _KEY + members.script("pi-launcher.pi", *(f"{name}.pi" for name in WORKERS))

    def replicas(count: int, line: str) -> Object:
        return {"replicas": count, "template": members.template(members.container("main", line))}

    return {
        "metadata": {"name": "pi"},
        "spec": {
            "sshAuthMountPath": _KEYS,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {"Launcher": replicas(1, launch), "Worker": replicas(2, work)},
        },
    }


async def test_an_mpi_job_runs_to_its_end_in_one_target(
    fleet: Fleet, source: Client, targets: dict[str, Client]
) -> None:
    await source.create(MPI_JOBS, mpi_job(), "default")
    before = await members.until_running(source, SELECTOR, 3)
    target = targets[members.target_of(before)]
    (launcher,) = before.keys() - set(WORKERS)
    assert await members.heard(fleet, launcher) == set(WORKERS)
    for name in WORKERS:
        assert await members.heard(fleet, name) == {"pi-launcher", *WORKERS}

    for kind, name in (
        (kinds.SERVICES, "pi"),
        (kinds.SECRETS, "pi-ssh"),
        (kinds.CONFIG_MAPS, "pi-config"),
    ):
        made = await source.get(kind, name, "default")
        await kit.until_one(
            target, kind, name, "default", lambda it, m=made: it.get("data") == m.get("data")
        )

    await source.delete(kinds.PODS, "pi-worker-1", "default")
    after = await members.until_back(source, SELECTOR, before, "pi-worker-1")
    assert members.target_of(after) == members.target_of(before)
    assert await members.heard(fleet, "pi-worker-1") == {"pi-launcher", *WORKERS}

    fleet.kubectl("c1", "exec", launcher, "--", "touch", "/tmp/done")
    await kit.until_one(
        source, MPI_JOBS, "pi", "default", lambda job: kit.has_condition(job, "Succeeded")
    )
    assert kit.phase(await source.get(kinds.PODS, launcher, "default")) == "Succeeded"
    left = {f"default/{launcher}"}
    await kit.until(source, kinds.PODS, lambda pods: pods.keys() == left, namespace="default")
