"""One phase: create pods, wait until they run, account for what that took, check, clean up.

The same code measures both systems. For the plain one the only cluster is a target of the other,
with its stock scheduler and no agent; for vnode the pods are created in the source.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hack.fleetlib.fleet import LocalFleet
from tests import kit
from tests.bench import accounts, figures, guarding, tracking
from tests.bench.figures import PLAIN, VNODE, Phase
from tests.bench.tracking import LABEL, NAMESPACE, Delegates, Tracks
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import Unreachable
from vnode.api.objects import Object
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.runtime.supervisor import supervise

SOURCE, TARGETS = "c1", ("c2", "c3")
CLIENTS = 32  # creates under way at once in a burst
_PATIENCE = 180.0  # seconds for all pods of a phase to run
_GONE = 180.0  # seconds for all pods of a phase to vanish
_ALL_PODS = AnswerLimit(1 << 28, 10_000_000)  # bytes, and values
_DELEGATE_LABEL = keys.PREFIX + LABEL


@dataclass(frozen=True)
class MeasuredFleet:
    """The fleet, with a client for each of its clusters, and what it costs when idle."""

    fleet: LocalFleet
    clients: Mapping[str, Client]
    idle: dict[str, dict[str, float]]
    targets: tuple[str, ...] = TARGETS


@dataclass(frozen=True)
class Order:
    """What a phase is to do: so many pods, in a burst or one after the other."""

    system: str
    pods: int
    burst: bool = True
    real: bool = False
    """A real kubelet runs them: they need a program, and no token."""

    @property
    def cluster(self) -> str:
        """Where the user creates the pods."""
        return SOURCE if self.system == VNODE else TARGETS[0]

    def pod(self, name: str) -> Object:
        """Return a pod that asks for little, elected if it is to go to a target."""
        pod = kit.pod(name, annotations=None if self.system == VNODE else {})
        pod["metadata"]["labels"] = {LABEL: "yes"}
        if self.real:
            pod["spec"] |= {
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 1,
            }
            pod["spec"]["containers"][0]["command"] = ["sleep", "1000000"]

        return pod


async def run(stage: MeasuredFleet, order: Order) -> Phase:
    """Do the phase; the clusters are as empty afterwards as before."""
    tracks, delegates = Tracks(), Delegates()
    client = stage.clients[order.cluster]
    used = {order.cluster: client} if order.system == PLAIN else dict(stage.clients)
    async with supervise() as tasks:
        tasks.start(guarding.guard(stage.fleet), "guard")
        await tracking.start_watching(tasks, client, tracks.see, label=LABEL)
        for target in stage.targets:
            await tracking.start_watching(
                tasks,
                stage.clients[target],
                delegates.seer(target),
                label=_DELEGATE_LABEL,
                field_selector="spec.nodeName!=",
            )
        asked, worked, started = await accounts.requests(used), accounts.work(stage.fleet), _now()
        await create(client, order, tracks)
        await tracks.all_running(_PATIENCE)
        ran, wall = accounts.work(stage.fleet), _now() - started
        answered, seconds = await accounts.requests_when_quiet(used), _now() - started
        lost, doubled = await _check(stage, order, tracks, delegates)

    pods = list(tracks.pods.values())
    first = min(track.created for track in pods)
    return Phase(
        system=order.system,
        burst=order.burst,
        pods=order.pods,
        bound=figures.quantiles([track.bound - track.created for track in pods]),
        running=figures.quantiles([track.running - track.created for track in pods]),
        bound_rate=round(order.pods / (max(track.bound for track in pods) - first), 1),
        running_rate=round(order.pods / (max(track.running for track in pods) - first), 1),
        create_rate=round(order.pods / (max(track.answered for track in pods) - first), 1),
        requests=accounts.per_pod(asked, answered, stage.idle, seconds, order.pods),
        processes=ran.since(worked),
        bench_cpu=round(ran.bench - worked.bench, 2),
        others=round(ran.others(worked) / wall, 2),
        seconds=round(seconds, 2),
        deleted=round(await _clean(stage, order), 2),
        delegates={
            target: sum(target in found.values() for found in delegates.bound.values())
            for target in stage.targets
        },
        lost=lost,
        doubled=doubled,
    )


def _now() -> float:
    return time.monotonic()


async def create(client: Client, order: Order, tracks: Tracks) -> None:
    """Create the pods as fast as the API server takes them, or each when the one before runs."""
    todo = iter([f"{order.system}-{number:04d}" for number in range(order.pods)])

    async def work(todo: Iterator[str]) -> None:
        for name in todo:
            track = tracks.begin(name)
            await client.create(kinds.PODS, order.pod(name), NAMESPACE)
            track.answered = _now()
            if not order.burst:
                await tracks.all_running(_PATIENCE)

    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS if order.burst else 1):
            group.create_task(work(todo), name=f"create-{number}")


async def _check(
    stage: MeasuredFleet, order: Order, tracks: Tracks, delegates: Delegates
) -> tuple[list[str], list[str]]:
    """Return the names of pods that lack a delegate, and of those with two.

    A pod lacks one if none runs in the target whose virtual node the pod is bound to.
    """
    if order.system == PLAIN:
        return [], []
    live: dict[str, list[str]] = {}  # parent's UID -> targets in which a delegate runs
    for target in stage.targets:
        for pod in await stage.clients[target].list(
            kinds.PODS, NAMESPACE, label_selector=_DELEGATE_LABEL
        ):
            if kit.phase(pod) == "Running" and objects.spec(pod).get("nodeName"):
                live.setdefault(objects.labels(pod)[keys.PARENT_UID], []).append(target)
    nodes = {target: names.virtual_node(NAMESPACE, target) for target in stage.targets}
    lost = [
        name
        for name, track in tracks.pods.items()
        if track.node not in [nodes[target] for target in live.get(track.uid, ())]
    ]
    doubled = [
        name
        for name, track in tracks.pods.items()
        if len(delegates.bound.get(track.uid, ())) > 1 or len(live.get(track.uid, ())) > 1
    ]
    return lost, doubled


async def _delete_all(client: Client) -> None:
    """Delete all pods by one request, whose answer has each of them."""
    query = {"labelSelector": LABEL}
    await client.request("DELETE", kinds.PODS.path(NAMESPACE), query=query, bound=_ALL_PODS)


async def _clean(stage: MeasuredFleet, order: Order) -> float:
    """Delete all pods by one request; returns when nothing of them is left in any cluster."""
    client, started = stage.clients[order.cluster], _now()
    try:
        await _delete_all(client)
    except Unreachable:
        # Slower than the client's patience; the API server goes on deleting all the same.
        await _delete_all(client)
    await kit.until_gone(client, kinds.PODS, NAMESPACE, seconds=_GONE, label_selector=LABEL)
    gone = _now() - started
    if order.system == VNODE:
        for target in stage.targets:
            there = stage.clients[target]
            await kit.until_gone(there, kinds.POD_CHAPERONS, NAMESPACE, seconds=_GONE)
            await kit.until_gone(
                there, kinds.PODS, NAMESPACE, seconds=_GONE, label_selector=_DELEGATE_LABEL
            )
    return gone
