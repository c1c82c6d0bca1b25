"""The chart of the version before, upgraded to this one and rolled back, under a pod that runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.fleetlib.agents import THIS, VnodeTree
from tests import kit
from tests.chart import releases
from tests.chart.helm import CHART
from tests.chart.kubelet import Kubelet, kubelet
from tests.chart.releases import AGENT, SCHEDULER
from tests.fleets import SOURCE, TARGET, started
from tests.kit import Fleet
from tests.upgrades import witness
from tests.upgrades.releases import ReleasedFleet
from tests.upgrades.witness import Witness
from vnode.api import keys, kinds, objects

REUSED = "--reset-then-reuse-values"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source and a target without anything of vnode's."""
    with started(tmp_path_factory, SOURCE, TARGET, "--nodes", "1", sources=()) as fleet:
        yield fleet


@dataclass
class ReleasedPair:
    """The machines of source and target, and the witness of what runs."""

    c1: Kubelet
    c2: Kubelet
    seen: Witness

    async def replace(self, machine: Kubelet, tree: VnodeTree, *words: str | Path) -> None:
        """Have helm upgrade, or roll back, and run what comes of it; then use it."""
        releases.run(machine, *words)
        machine.tree = tree
        await machine.roll_out()
        await has_version(machine)
        assert not self.seen.harm, f"helm {words[0]} in {machine.cluster}: {self.seen.harm}"
        name = f"{words[0]}-{machine.cluster}"
        await releases.delegate(self.c1.client, self.c2.client, name)
        assert not self.seen.harm, f"{name}: {self.seen.harm}"


async def has_version(machine: Kubelet) -> None:
    """Wait until the agents say that they have the version of the machine's tree."""
    version = ReleasedFleet.version(machine.tree)
    await kit.until_one(
        machine.client,
        kinds.CLUSTER_SUMMARIES,
        keys.SUMMARY_NAME,
        "",
        lambda summary: objects.annotations(summary).get(keys.AGENT_VERSION) == version,
    )


@pytest.mark.timeout(1200)
async def test_releases_are_upgraded_and_rolled_back_under_a_pod(
    plain: Fleet, version_before: VnodeTree, tmp_path: Path
) -> None:
    chart = version_before.folder / "charts" / "vnode"
    async with (
        kubelet(plain, SOURCE, tmp_path / "pods") as c1,
        kubelet(plain, TARGET, tmp_path / "pods") as c2,
    ):
        for machine, names in ((c2, (AGENT, SCHEDULER)), (c1, (AGENT,))):
            machine.tree = version_before
            words = ("install", "vnode", chart, "--create-namespace")
            releases.run(machine, *words, values=releases.values(machine))
            await releases.play(machine, *names)
            await has_version(machine)

        releases.connect(plain, SOURCE, TARGET)
        await releases.delegate(c1.client, c2.client, "first")
        async with witness.watching(c1.client, c2.client) as seen:
            await seen.guard()
            pair = ReleasedPair(c1, c2, seen)
            for machine in (c2, c1):
                await pair.replace(machine, THIS, "upgrade", "vnode", CHART, REUSED)

            for machine in (c1, c2):
                await pair.replace(machine, version_before, "rollback", "vnode", "1")
