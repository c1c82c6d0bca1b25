"""Address, authority and token of a target are replaced while users hold streams: none is cut."""

from __future__ import annotations

import asyncio
import base64
import itertools

from tests import kit
from tests.aged_tokens import aged
from tests.faults import other_addresses
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster
from vnode.api import kinds
from vnode.cli import kubeconfigs

SECRET = f"vnode-target-{TARGET}"
TICKS = "i=0; while true; do echo $i; i=$((i+1)); sleep 0.1; done"


async def test_a_followed_log_and_a_session_go_on_while_the_connection_moves(
    source: NodeCluster,
) -> None:
    fleet = source.fleet
    present, _name = kubeconfigs.read(fleet.kubeconfig(TARGET))
    source.start("ticker", TICKS)
    async with (
        asyncio.timeout(kit.PATIENCE),
        fleet.client(SOURCE) as client,
        other_addresses.serving(fleet, TARGET, present) as ways,
        source.session("logs", "-f", "ticker") as log,
        source.session("exec", "-i", "ticker", "--", "cat") as session,
    ):
        assert log.stdout
        assert session.stdin
        assert session.stdout
        ticks = itertools.count()
        lines, sent, echoed = log.stdout, session.stdin, session.stdout

        async def use() -> None:
            for tick in itertools.islice(ticks, 20):
                assert await lines.readline() == f"{tick}\n".encode()

            sent.write(b"here\n")
            await sent.drain()
            assert await echoed.readline() == b"here\n"

        await use()
        secret = await client.get(kinds.SECRETS, SECRET, "default")
        token = str(kubeconfigs.token_in(base64.b64decode(secret["data"]["config"])))
        for way in (ways[0], ways[2]):
            made = aged(fleet, TARGET, token, hours=0)
            await other_addresses.put(client, SECRET, way.endpoint, made)
            await way.address.is_watched.wait()
            await use()

        await client.patch(kinds.SECRETS, SECRET, {"data": secret["data"]}, "default")

    source.remove("ticker")
