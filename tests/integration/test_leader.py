"""Leader election on a real API server: one leads, another follows, also after a kill."""

from __future__ import annotations

import asyncio
import secrets
import sys

from tests import kit
from vnode.api import kinds, objects
from vnode.kube.client import Client
from vnode.runtime.leader import Elector, LeaseTiming

QUICK = LeaseTiming(duration=4.0, renew_deadline=3.0, retry_period=0.3)
LONG = LeaseTiming(duration=60.0, renew_deadline=40.0, retry_period=0.3)
LEADER_SCRIPT = """
import asyncio, sys
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.runtime.leader import Elector, LeaseTiming

async def work():
    print("leading", flush=True)
    await asyncio.Event().wait()

async def main():
    where = endpoint.from_kubeconfig_file(sys.argv[1])
    async with Client(where, name="killed") as client:
        timing = LeaseTiming(duration=4.0, renew_deadline=3.0, retry_period=0.3)
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


def elector(client: Client, lease: str, identity: str, timing: LeaseTiming = QUICK) -> Elector:
    return Elector(client, "default", lease, identity, timing=timing)


async def test_one_leads_for_longer_than_its_lease_lasts(bare_fleet: kit.Fleet) -> None:
    first, second = Term(), Term()
    async with bare_fleet.client("c1") as client:
        name = f"renewed-{secrets.token_hex(4)}"
        one, two = elector(client, name, "one"), elector(client, name, "two")
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(one.run(first))
            await first.began.wait()
            following = group.create_task(two.run(second))
            await asyncio.sleep(QUICK.duration + 1)
            assert one.is_leader
            assert not second.began.is_set()
            following.cancel()
            leading.cancel()


async def test_when_one_ends_the_other_follows_long_before_the_lease_ends(
    bare_fleet: kit.Fleet,
) -> None:
    first, second = Term(), Term()
    async with bare_fleet.client("c1") as client:
        name = f"handover-{secrets.token_hex(4)}"
        one, two = (elector(client, name, identity, LONG) for identity in ("one", "two"))
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(one.run(first))
            await first.began.wait()
            following = group.create_task(two.run(second))
            leading.cancel()
            async with asyncio.timeout(LONG.duration / 2):
                await second.began.wait()

            assert first.ended.is_set()
            assert two.is_leader
            assert not one.is_leader
            lease = await client.get(kinds.LEASES, name, "default")
            assert objects.spec(lease)["holderIdentity"] == "two"
            assert objects.spec(lease)["leaseTransitions"] == 1
            following.cancel()


async def test_the_lease_of_a_killed_leader_is_taken_when_it_ends(bare_fleet: kit.Fleet) -> None:
    name = f"killed-{secrets.token_hex(4)}"
    killed = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        LEADER_SCRIPT,
        str(bare_fleet.kubeconfig("c1")),
        name,
        stdout=asyncio.subprocess.PIPE,
        cwd=kit.ROOT,
    )
    assert killed.stdout is not None
    assert await killed.stdout.readline() == b"leading\n"
    term = Term()
    async with bare_fleet.client("c1") as client:
        heir = elector(client, name, "heir")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(heir.run(term))
            killed.kill()
            await killed.wait()
            async with asyncio.timeout(kit.PATIENCE):
                await term.began.wait()

            assert heir.leader == "heir"
            task.cancel()


async def test_a_lease_taken_away_ends_the_work(bare_fleet: kit.Fleet) -> None:
    first = Term()
    theft = {"spec": {"holderIdentity": "thief"}}
    name = f"stolen-{secrets.token_hex(4)}"
    async with bare_fleet.client("c1") as client, asyncio.TaskGroup() as group:
        task = group.create_task(elector(client, name, "one").run(first))
        await first.began.wait()
        await client.patch(kinds.LEASES, name, theft, "default")
        async with asyncio.timeout(kit.PATIENCE):
            await first.ended.wait()

        task.cancel()
