"""Token, certificate authority and address of a target are replaced while pods flow to it.

All three are in one Secret, which is written again and again. A new token is taken over by the
connection; the others take a new one each. No pod may fail, or run twice, the virtual node is ready
all the time, and an exec that was open before is open afterwards.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator

import pytest

from tests import background, kit
from tests.aged_tokens import aged
from tests.faults import other_addresses
from tests.faults.pod_flow import PodFlow, on
from tests.faults.profiles import echo, says_again
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import kinds
from vnode.cli import kubeconfigs
from vnode.kube.client import Client

RATE = 20  # pods a second
SECONDS = 12  # for which they are made
SECRET, NODE = "vnode-target-c2", "admiralty-default-c2"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source and a target with room for all pods."""
    words = ("c1", "c2", "--nodes", "3", "--agents", "--connect", "c1:c2")
    with started(tmp_path_factory, *words) as there:
        yield there


async def test_a_target_whose_token_authority_and_address_change_loses_no_pod(
    fleet: Fleet, source: Client, target: Client
) -> None:
    secret = await source.get(kinds.SECRETS, SECRET, "default")
    text = base64.b64decode(secret["data"]["config"])
    token = str(kubeconfigs.token_in(text))
    present, _name = kubeconfigs.read(fleet.kubeconfig("c2"))
    await source.create(kinds.PODS, kit.pod("steady", nodeSelector=on(NODE)), "default")
    await kit.until_running(source, "steady")
    flow = PodFlow(source, NODE, RATE * SECONDS)
    started_at = time.monotonic()
    async with (
        other_addresses.serving(fleet, "c2", present) as others,
        echo(fleet, "steady") as stream,
        background.running(*flow.watches()),
        asyncio.TaskGroup() as group,
    ):
        await says_again(stream, "before")
        group.create_task(flow.run(RATE))
        endpoints = [present, *(other.endpoint for other in others), present]
        addresses = [None, *(other.address for other in others), None]
        for endpoint, address in zip(endpoints, addresses, strict=True):
            for hours in (0.0, 0.5):
                await asyncio.sleep(SECONDS / 12)
                made = aged(fleet, "c2", token, hours=hours)
                await other_addresses.put(source, SECRET, endpoint, made)

            if address is not None:
                async with asyncio.timeout(kit.PATIENCE):
                    await address.is_watched.wait()  # else all might be as before

                await says_again(stream, f"while it is {endpoint.server}")

        async with asyncio.timeout(kit.PATIENCE):
            await flow.all_run.wait()

        await says_again(stream, "after")
        print(f"{RATE * SECONDS} pods ran after {time.monotonic() - started_at:.1f} s")

    await flow.check(target)
