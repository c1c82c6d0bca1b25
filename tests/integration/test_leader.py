"""Leader election on a real API server: one leads, another follows, also after a kill."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests import kit
from vnode.api import kinds, objects
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.runtime.leader import Elector, Timing

QUICK = Timing(lease=2.0, renew=1.2, retry=0.2)
LEADER_SCRIPT = """
import asyncio, sys
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.runtime.leader import Elector, Timing

async def work():
    print("leading", flush=True)
    await asyncio.Event().wait()

async def main():
    where = endpoint.from_kubeconfig_file(sys.argv[1])
    async with Client(where, name="killed") as client:
        timing = Timing(lease=2.0, renew=1.2, retry=0.2)
        await Elector(client, "default", sys.argv[2], "killed", timing=timing).run(work)

asyncio.run(main())
"""


class Term:
    """Work that says when it begins and ends, and that no two of it run at once."""

    running = 0

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self) -> None:
        assert Term.running == 0
        Term.running += 1
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            Term.running -= 1
            self.ended.set()


def elector(client: Client, lease: str, identity: str) -> Elector:
    return Elector(client, "default", lease, identity, timing=QUICK)


async def test_one_leads_and_when_it_ends_the_other_follows_at_once(cluster: Any) -> None:
    first, second = Term(), Term()
    async with Client(endpoint.from_kubeconfig_file(cluster.kubeconfig), name="c1") as client:
        one, two = elector(client, "handover", "one"), elector(client, "handover", "two")
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(one.run(first))
            await first.began.wait()
            following = group.create_task(two.run(second))
            await asyncio.sleep(QUICK.lease + 1)
            assert one.is_leader
            assert not second.began.is_set()
            leading.cancel()
            async with asyncio.timeout(QUICK.retry * 2.2 + 2):
                await second.began.wait()

            assert first.ended.is_set()
            assert two.is_leader
            assert not one.is_leader
            lease = await client.get(kinds.LEASES, "handover", "default")
            assert objects.spec(lease)["holderIdentity"] == "two"
            assert objects.spec(lease)["leaseTransitions"] == 2
            following.cancel()


async def test_the_lease_of_a_killed_leader_is_taken_when_it_ends(cluster: Any) -> None:
    killed = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        LEADER_SCRIPT,
        str(cluster.kubeconfig),
        "killed",
        stdout=asyncio.subprocess.PIPE,
        cwd=kit.ROOT,
    )
    assert killed.stdout is not None
    assert await killed.stdout.readline() == b"leading\n"
    term = Term()
    async with Client(endpoint.from_kubeconfig_file(cluster.kubeconfig), name="c1") as client:
        heir = elector(client, "killed", "heir")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(heir.run(term))
            killed.kill()
            await killed.wait()
            async with asyncio.timeout(15):
                await term.began.wait()

            assert heir.leader == "heir"
            task.cancel()


async def test_a_lease_taken_away_ends_the_work(cluster: Any) -> None:
    first = Term()
    async with Client(endpoint.from_kubeconfig_file(cluster.kubeconfig), name="c1") as client:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(elector(client, "stolen", "one").run(first))
            await first.began.wait()
            await client.patch(
                kinds.LEASES, "stolen", {"spec": {"holderIdentity": "thief"}}, "default"
            )
            async with asyncio.timeout(5):
                await first.ended.wait()

            task.cancel()
