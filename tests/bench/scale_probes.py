"""The three things that are measured of a large fleet: rest, the way back, and a restart."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiohttp

from hack.fleetlib import addresses, agents, processes
from tests import kit
from tests.bench import accounts, scale_figures, tracking
from tests.bench.figures import quantiles
from tests.bench.phases import SOURCE, MeasuredFleet
from tests.bench.scale_figures import Lag, Rest, Restart
from tests.bench.tracking import LABEL, NAMESPACE, Lost
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.nodes.node_writer import HEARTBEAT
from vnode.runtime.supervisor import supervise

_PATIENCE: Final = 60.0  # seconds for any of these
_LOOK: Final = 0.05  # seconds between looks at a page of the agent, which cannot be watched
_SETTLE: Final = 5.0  # seconds in which a new leader has looked at all pods
_MARK: Final = "bench-lag"  # what the statuses of changed delegates say first


async def rest(stage: MeasuredFleet, what: str, seconds: float) -> Rest:
    """Do nothing for that long, and see what that costs."""
    await accounts.requests_when_quiet(stage.clients)
    asked, worked, started = (
        await accounts.requests(stage.clients),
        accounts.work(stage.fleet),
        time.monotonic(),
    )
    await asyncio.sleep(seconds)
    worked_then, took = accounts.work(stage.fleet), time.monotonic() - started
    return Rest(
        what=what,
        seconds=round(took, 2),
        processes=worked_then.since(worked),
        requests=accounts.rates(asked, await accounts.requests(stage.clients), took),
        connections=_connections(stage),
        others=round(worked_then.others(worked) / took, 2),
    )


def _connections(stage: MeasuredFleet) -> int:
    identity = stage.fleet.state().process(SOURCE, agents.AGENT).identity
    assert identity is not None
    files = Path(f"/proc/{identity.pid}/fd").iterdir()
    return sum(str(file.readlink()).startswith("socket:") for file in files)


async def lag(stage: MeasuredFleet, what: str, uids: Sequence[str], at_once: int) -> Lag:
    """Change the statuses of the delegates of the pods with these UIDs, so many at a time."""
    seen: dict[str, asyncio.Event] = {uid: asyncio.Event() for uid in uids}

    def see(pod: Object) -> None:
        if objects.status(pod).get("message") == f"{_MARK} {what}":
            seen[objects.uid(pod)].set()

    delegates = await _delegates(stage)
    times: list[float] = []
    todo = iter(uids)

    async def work() -> None:
        for uid in todo:
            there, name = delegates[uid]
            started = time.monotonic()
            body = {"status": {"message": f"{_MARK} {what}"}}
            await there.patch(kinds.PODS, name, body, NAMESPACE, subresource="status")
            await seen[uid].wait()
            times.append(time.monotonic() - started)

    async with asyncio.timeout(_PATIENCE), supervise() as tasks:
        await tracking.start_watching(tasks, stage.clients[SOURCE], see, label=LABEL)
        async with asyncio.TaskGroup() as group:
            for number in range(at_once):
                group.create_task(work(), name=f"change-{number}")

    return Lag(what, quantiles(times))


async def _delegates(stage: MeasuredFleet) -> dict[str, tuple[Client, str]]:
    """Return each delegate by the UID of its proxy: the client of its cluster, and its name."""
    found: dict[str, tuple[Client, str]] = {}
    for client in (stage.clients[target] for target in stage.targets):
        label = keys.PREFIX + LABEL
        for pod in await client.list(kinds.PODS, NAMESPACE, label_selector=label):
            found[objects.labels(pod)[keys.PARENT_UID]] = client, objects.name(pod)
    return found


async def restart(stage: MeasuredFleet, what: str) -> Restart:
    """Restart the agent twice: to see when it works again, and what it writes without work."""
    started = await _kill_and_start(stage)
    client = stage.clients[SOURCE]
    async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as group:
        leads = group.create_task(_leads(stage, started), name="leads")
        ready = await _until(stage, "/readyz", "ok") - started
        pod = kit.pod(f"after-{what.replace(' ', '-')}")
        created = await client.create(kinds.PODS, pod, NAMESPACE)
        await kit.until_one(
            client,
            kinds.PODS,
            objects.name(created),
            NAMESPACE,
            lambda pod: kit.phase(pod) == "Running",
        )
        placed = time.monotonic() - started

    await _until_no_heartbeat_is_near(client)
    before = await accounts.requests_when_quiet(stage.clients)
    again = await _kill_and_start(stage)
    async with asyncio.timeout(_PATIENCE):
        await _leads(stage, again)
    await asyncio.sleep(_SETTLE)
    after = await accounts.requests_when_quiet(stage.clients)
    return Restart(
        what=what,
        ready=round(ready, 2),
        leads=round(leads.result(), 2),
        placed=round(placed, 2),
        writes=scale_figures.writes(before, after),
    )


async def _until_no_heartbeat_is_near(client: Client) -> None:
    """Wait until no virtual node's status is due to be written.

    Agents write it every five minutes, whether or not anybody restarts them.
    """

    def is_fresh(node: Object) -> bool:
        ready = objects.condition(node, "Ready") or {}
        at = objects.parse_timestamp(ready.get("lastHeartbeatTime", ""))
        age = SystemClock().now() - at if at else None
        return age is not None and age.total_seconds() < HEARTBEAT - _PATIENCE

    await kit.until(
        client,
        kinds.NODES,
        lambda nodes: all(is_fresh(node) for node in nodes.values()),
        label_selector=f"{keys.PROVIDER_LABEL}={keys.PROVIDER}",
        seconds=2 * _PATIENCE,
    )


async def _kill_and_start(stage: MeasuredFleet) -> float:
    fleet = stage.fleet
    await asyncio.to_thread(fleet.stop, SOURCE, agents.AGENT, signal.SIGKILL)
    started = time.monotonic()
    await asyncio.to_thread(processes.start, fleet.directory, SOURCE, agents.AGENT)
    return started


async def _leads(stage: MeasuredFleet, started: float) -> float:
    return await _until(stage, "/metrics", "\nvnode_leader 1.0\n") - started


async def _until(stage: MeasuredFleet, page: str, text: str) -> float:
    """Return the moment from which a page of the source's agent has that text."""
    url = f"http://{stage.fleet.site(SOURCE).agents[0]}:{addresses.AGENT_HEALTH}{page}"
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        for _ in range(int(_PATIENCE / _LOOK)):
            try:
                async with session.get(url) as answer:
                    if answer.status == 200 and text in await answer.text():
                        return time.monotonic()
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass  # it has only just been started
            await asyncio.sleep(_LOOK)

    raise Lost(f"the agent's {page} did not say {text.strip()!r} in {_PATIENCE:.0f} s")
