"""`vnode quickstart`, from two clusters with nothing of vnode in them to a pod that runs."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Final

import yaml

from tests import kit, pages
from tests.chart import releases
from tests.chart.kubelet import Kubelet, kubelet
from tests.chart.releases import AGENT, NAMESPACE, SCHEDULER
from tests.fleets import SOURCE, TARGET, Result
from tests.kit import ROOT, Fleet
from vnode.api import kinds

TWO_MINUTES: Final = 120.0
"""Seconds that the README promises from the command to what to do next, but for pulls of images."""


def as_the_readme_says(fleet: Fleet) -> list[str]:
    """Return the words behind `vnode quickstart` in the README, with the kubeconfigs of a fleet."""
    [command] = [
        one.joined
        for block in pages.blocks(ROOT / "README.md")
        for one in block.commands()
        if one.text.startswith("vnode quickstart ")
    ]
    files = {"source.kubeconfig": SOURCE, "target.kubeconfig": TARGET}
    words = shlex.split(command)[2:]
    return [str(fleet.kubeconfig(files[word])) if word in files else word for word in words]


async def quickstart(fleet: Fleet, *words: str | Path) -> Result:
    """Run `vnode quickstart` on the two clusters of a fleet, as their administrator."""
    files = ("--source", fleet.kubeconfig(SOURCE), "--target", fleet.kubeconfig(TARGET))
    return await run((*files, *words))


async def run(words: Iterable[str | Path]) -> Result:
    path = os.pathsep.join((str(Path(kit.program("helm")).parent), os.environ["PATH"]))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vnode", "quickstart", *map(str, words)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**{k: v for k, v in os.environ.items() if k != "KUBECONFIG"}, "PATH": path},
    )
    out, err = await process.communicate()
    return Result(process.returncode or 0, out.decode(), err.decode())


async def timed(running: Awaitable[Result]) -> tuple[Result, float]:
    """Return a result, and the seconds until it was there."""
    begun = time.monotonic()
    return await running, time.monotonic() - begun


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
            as_told = as_the_readme_says(fleet)
            running = group.create_task(timed(run([*as_told, "--name", TARGET, *map(str, chosen)])))
            group.create_task(play(c1, AGENT))
            group.create_task(play(c2, AGENT, SCHEDULER))

        done, seconds = running.result()
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
        assert seconds < TWO_MINUTES
        await releases.delegate(c1.client, c2.client, "first")
        again = await quickstart(fleet, "-n", "default", "--name", TARGET)
        assert again.code == 0, again.err
        assert "installed" not in again.out
