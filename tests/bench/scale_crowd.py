"""Makes a fleet large: thousands of pods, and many Targets that lead to a few clusters.

Each of the many Targets is a namespace's own, with a Source in the namespace of the same name in
its target: to the agent these are so many clusters, each with a connection, to the machine they are
few. They are made by what `vnode connect` runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from tests import kit
from tests.bench import phases, tracking
from tests.bench.figures import VNODE
from tests.bench.phases import CLIENTS, SOURCE, MeasuredFleet, Order
from tests.bench.tracking import LABEL, Tracks
from vnode.api import kinds, names
from vnode.cli import kubeconfigs
from vnode.cli.connect.connector import Connector
from vnode.cli.connect.desired import DesiredConnection
from vnode.runtime.supervisor import supervise

_TARGET: Final = "small"
_YEAR: Final = 365 * 24 * 3600
_PATIENCE: Final = 400.0  # seconds for all nodes to be Ready, or some pods to run
_PATIENCE_A_POD: Final = 0.2  # more seconds for each pod of thousands
SMALL_LABEL: Final = "bench-small"


async def pods(stage: MeasuredFleet, count: int) -> tuple[list[str], float]:
    """Create that many elected pods; their UIDs, and the seconds until all ran."""
    tracks, started = Tracks(), time.monotonic()
    async with supervise() as tasks:
        await tracking.start_watching(tasks, stage.clients[SOURCE], tracks.see, label=LABEL)
        await phases.create(stage.clients[SOURCE], Order(VNODE, count), tracks)
        await tracks.all_running(_PATIENCE + _PATIENCE_A_POD * count)
    return [track.uid for track in tracks.pods.values()], time.monotonic() - started


def namespaces(count: int) -> list[str]:
    """Return the namespaces that have a Target of their own."""
    return [f"small-{number:02d}" for number in range(count)]


async def targets(stage: MeasuredFleet, count: int) -> float:
    """Give that many namespaces a Target each; the seconds until all their nodes are Ready."""
    reach = {name: kubeconfigs.read(stage.fleet.kubeconfig(name))[0] for name in stage.targets}

    async def connect(number: int, namespace: str) -> None:
        there = stage.targets[number % len(stage.targets)]
        here, target = stage.clients[SOURCE], stage.clients[there]
        await kit.new_namespace(here, namespace)
        await kit.new_namespace(target, namespace)
        connection = DesiredConnection(namespace, namespace, _TARGET, SOURCE, reach[there], _YEAR)
        await Connector(here, target, connection, lambda _line: None).run()

    started = time.monotonic()
    spaces = namespaces(count)
    await _each([lambda n=n, s=s: connect(n, s) for n, s in enumerate(spaces)])
    wanted = {names.virtual_node(space, _TARGET) for space in spaces}
    await kit.until(
        stage.clients[SOURCE],
        kinds.NODES,
        lambda nodes: all(name in nodes and kit.is_ready(nodes[name]) for name in wanted),
        seconds=_PATIENCE,
    )
    return time.monotonic() - started


async def small_pods(stage: MeasuredFleet, targets: int, each: int) -> None:
    """Run that many pods on each of the many targets."""
    client = stage.clients[SOURCE]

    async def create(namespace: str, number: int) -> None:
        pod = kit.pod(f"small-{number}")
        pod["metadata"]["labels"] = {SMALL_LABEL: "yes"}
        await client.create(kinds.PODS, pod, namespace)

    spaces = namespaces(targets)
    await _each([lambda s=s, n=n: create(s, n) for s in spaces for n in range(each)])
    await kit.until(
        client,
        kinds.PODS,
        lambda found: kit.running(found, targets * each),
        label_selector=SMALL_LABEL,
        seconds=_PATIENCE,
    )


async def _each(todo: list[Callable[[], Awaitable[None]]]) -> None:
    """Do all, some at once."""
    left = iter(todo)

    async def work() -> None:
        for do in left:
            await do()

    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(work(), name=f"crowd-{number}")
