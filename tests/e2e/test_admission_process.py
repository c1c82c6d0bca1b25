"""Pods are admitted by a process of its own: what holds up the agent does not hold them up."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp

from hack.fleetlib.fleet import LocalFleet
from tests import background, kit
from tests.e2e import test_agent_endpoints as endpoints
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.errors import ApiError
from vnode.api.objects import Object
from vnode.kube import linux_calls
from vnode.kube.client import Client


async def admitted(source: Client, name: str, **annotations: str) -> Object:
    """Create a pod by a dry run; return what admission has made of it."""
    body = {**kit.pod(name, annotations={keys.ELECT: "", **annotations}), "apiVersion": "v1"}
    query = {"dryRun": "All"}
    answer: Object = await source.request(
        "POST", kinds.PODS.path("default"), query=query, body={**body, "kind": "Pod"}
    )
    return answer


@contextmanager
def frozen(fleet: Fleet) -> Iterator[None]:
    """Have the agent of c1 do nothing within the block."""
    site = LocalFleet(fleet.folder)
    site.send_signal("c1", "agent", signal.SIGSTOP)
    try:
        yield
    finally:
        site.send_signal("c1", "agent", signal.SIGCONT)


def child_of_agent(fleet: Fleet) -> int:
    identity = LocalFleet(fleet.folder).state().process("c1", "agent").identity
    assert identity is not None
    threads = Path(f"/proc/{identity.pid}/task").iterdir()
    [pid] = [int(pid) for each in threads for pid in (each / "children").read_text().split()]
    return pid


async def test_pods_are_admitted_while_the_agent_stands_still(fleet: Fleet, source: Client) -> None:
    with frozen(fleet):
        for number in range(20):
            pod = await admitted(source, f"p{number}")
            assert objects.spec(pod)["schedulerName"] == keys.PROXY_SCHEDULER


async def readiness(fleet: Fleet, wanted: bool) -> None:
    """Return when the agent of c1 calls itself ready, or says that it is not."""
    url = f"http://{endpoints.address(fleet, 'c1')}:8080/readyz"
    async with asyncio.timeout(kit.PATIENCE), aiohttp.ClientSession() as session:
        while True:
            async with session.get(url) as answer:
                if (answer.status == 200) is wanted:
                    return

            await asyncio.sleep(0.05)


async def test_a_process_that_ends_is_started_again(fleet: Fleet, source: Client) -> None:
    await admitted(source, "before")
    pid = child_of_agent(fleet)
    os.kill(pid, signal.SIGKILL)
    await readiness(fleet, False)
    await readiness(fleet, True)
    await admitted(source, "after")
    assert child_of_agent(fleet) != pid


async def test_it_ends_without_an_error_when_its_agent_is_killed(fleet: Fleet) -> None:
    log = LocalFleet(fleet.folder).log("c1", "agent")
    said, child = log.stat().st_size, linux_calls.process_descriptor(child_of_agent(fleet))
    try:
        await asyncio.to_thread(fleet.run, "stop", "c1", "agent", "--kill")
        ended, _, _ = await asyncio.to_thread(select.select, [child], [], [], 30)
        assert ended
        assert "Traceback" not in log.read_bytes()[said:].decode()
    finally:
        os.close(child)
        await asyncio.to_thread(fleet.run, "start", "c1", "agent")


COSTLY = "{" + ", ".join(f"a{number}: [x]" for number in range(490)) + "}"
"""As many elements as YAML may have; no field of a pod has such a name."""


async def have_refused(attacker: Client, namespace: str) -> None:
    """Create costly pods that are refused, on and on."""
    annotations = {keys.ELECT: "", keys.PROXY_CONSTRAINTS: COSTLY}
    pod = {**kit.pod("costly", annotations=annotations), "apiVersion": "v1", "kind": "Pod"}
    while True:
        with suppress(ApiError):
            await attacker.request("POST", kinds.PODS.path(namespace), body=pod)


async def slowest(source: Client) -> float:
    """Return how long nearly all of some pods take at most."""
    took = []
    for number in range(60):
        begin = time.monotonic()
        await admitted(source, f"bystander-{number}")
        took.append(time.monotonic() - begin)

    return sorted(took)[-2]


async def test_a_tenants_costly_pods_keep_no_other_namespace_waiting(
    fleet: Fleet, source: Client
) -> None:
    namespace = await kit.namespace_for_pods(source, "costly", elected=True)
    quiet = await slowest(source)
    async with fleet.client("c1") as attacker:
        attacks = (have_refused(attacker, namespace) for _ in range(30))
        async with background.running(*attacks):
            busy = await slowest(source)

    await source.delete(kinds.NAMESPACES, namespace)
    print(f"a pod is admitted in {quiet:.3f} s, and in {busy:.3f} s beside costly ones")
    assert busy < 3.0, (quiet, busy)  # the processors are full of API servers; it was 20 s and more
