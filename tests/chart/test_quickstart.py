"""`vnode quickstart`, from two clusters with nothing of vnode in them to a pod that runs."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import yaml

from tests import kit
from tests.chart import releases
from tests.chart.helm import CHART
from tests.chart.kubelet import Kubelet, kubelet
from tests.chart.releases import AGENT, NAMESPACE, SCHEDULER
from tests.fleets import SOURCE, TARGET, Result
from tests.kit import Fleet
from vnode.api import kinds


async def quickstart(fleet: Fleet, *words: str | Path) -> Result:
    """Run `vnode quickstart` on the two clusters of a fleet, as their administrator."""
    files = ("--source", fleet.kubeconfig(SOURCE), "--target", fleet.kubeconfig(TARGET))
    path = os.pathsep.join((str(Path(kit.program("helm")).parent), os.environ["PATH"]))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vnode", "quickstart", *map(str, (*files, *words))),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**{k: v for k, v in os.environ.items() if k != "KUBECONFIG"}, "PATH": path},
    )
    out, err = await process.communicate()
    return Result(process.returncode or 0, out.decode(), err.decode())


async def play(machine: Kubelet, *names: str) -> None:
    """Run Deployments as soon as a release has made them."""
    for name in names:
        await kit.until_one(machine.client, kinds.DEPLOYMENTS, name, NAMESPACE, bool)

    await releases.play(machine, *names)


def values(machine: Kubelet, folder: Path) -> Path:
    file = folder / f"values-{machine.cluster}.yaml"
    file.write_text(yaml.safe_dump(releases.values(machine)))
    return file


async def test_two_clusters_are_installed_connected_and_run_a_pod(
    fleet: Fleet, tmp_path: Path
) -> None:
    refused = await quickstart(fleet, "-n", "default")
    assert refused.code == 1
    assert "vnode does not run in the source cluster: name the chart with --chart" in refused.err
    async with (
        kubelet(fleet, SOURCE, tmp_path / "pods") as c1,
        kubelet(fleet, TARGET, tmp_path / "pods") as c2,
    ):
        chosen = ("--source-values", values(c1, tmp_path), "--target-values", values(c2, tmp_path))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(
                quickstart(fleet, "-n", "default", "--name", TARGET, "--chart", CHART, *chosen)
            )
            group.create_task(play(c1, AGENT))
            group.create_task(play(c2, AGENT, SCHEDULER))

        done = running.result()
        assert done.code == 0, done.err
        ticked = [line[2:] for line in done.out.splitlines() if line.startswith("✓ ")]
        assert [line.partition(":")[0] for line in ticked] == [
            "the source cluster answers",
            "the target cluster answers",
            "vnode is installed in the source cluster",
            "vnode is installed in the target cluster",
            "the agent of the source cluster runs",
            "the agent of the target cluster runs",
            "connected",
            f"Target {TARGET} is ready",
            "pods of namespace default take part",
            "a trial pod was elected (and not kept)",
        ]
        assert "vnode doctor --kubeconfig" in done.out
        await releases.delegate(c1.client, c2.client, "first")
        again = await quickstart(fleet, "-n", "default", "--name", TARGET)
        assert again.code == 0, again.err
        assert "installed" not in again.out
