"""The token of a Target is renewed, and whatever goes through its connection goes on."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests import kit
from tests.aged_tokens import aged
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, others_are_unaffected, shared
from tests.e2e.test_agent_endpoints import address
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube.client import Client
from vnode.targets import expiry

__all__ = ["home", "others_are_unaffected", "shared"]

pytestmark = pytest.mark.usefixtures("others_are_unaffected")

_SECRET = "vnode-target-bad"
_THERE = {keys.PROXY_CONSTRAINTS: f"nodeSelector: {{{keys.TARGET_NAME}: bad}}"}


async def kubeconfig(source: Client, namespace: str) -> bytes:
    secret = await source.get(kinds.SECRETS, _SECRET, namespace)
    return base64.b64decode(secret["data"]["config"])


def token_in(secret: Object) -> str:
    return str(kubeconfigs.token_in(base64.b64decode(secret["data"]["config"])))


async def put(source: Client, namespace: str, text: bytes) -> None:
    data = {"config": base64.b64encode(text).decode()}
    await source.patch(kinds.SECRETS, _SECRET, {"data": data}, namespace)


async def relists(fleet: Fleet, cluster: str) -> float:
    """Return how often the agent of c1 has listed anything of a target."""
    url = f"http://{address(fleet, 'c1')}:8080/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        text = await answer.text()

    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "vnode_informer_lists_total" and sample.labels["api_server"] == cluster
    )


@dataclass(frozen=True)
class OpenStreams:
    """`kubectl logs -f` and `kubectl exec -i ... cat` of a pod."""

    logs: Process
    echo: Process

    async def go_on(self) -> None:
        """Assert that `echo` returns what is written to it, and that `logs` has not ended."""
        assert self.echo.stdin is not None
        assert self.echo.stdout is not None
        self.echo.stdin.write(b"still here\n")
        async with asyncio.timeout(kit.PATIENCE):
            assert await self.echo.stdout.readline() == b"still here\n"

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await self.logs.wait()


@pytest.fixture
async def streams(source: Client, fleet: Fleet, shared: str) -> AsyncIterator[OpenStreams]:
    """Yield open streams of a pod that runs by way of the Target `bad`.

    The connection of the Target has a token that lasts a day.
    """
    done = own.connect(fleet, shared, "c2", "--token-lifetime", "24h")
    assert not done.code, done.err
    await own.assert_connects(source, shared)
    await own.run_pod(source, shared, "through-it-all", **_THERE)
    kubectl, pipe = [*fleet.kubectl_command("c1"), "-n", shared], subprocess.PIPE
    logs = await asyncio.create_subprocess_exec(
        *kubectl, "logs", "-f", "through-it-all", stdout=pipe
    )
    echo = await asyncio.create_subprocess_exec(
        *kubectl, "exec", "-i", "through-it-all", "--", "cat", stdin=pipe, stdout=pipe
    )
    assert logs.stdout is not None
    assert await logs.stdout.readline()
    opened = OpenStreams(logs, echo)
    await opened.go_on()
    yield opened
    for process in (logs, echo):
        if process.returncode is None:
            process.terminate()

        await process.communicate()

    await source.delete(kinds.PODS, "through-it-all", shared)
    await kit.until_gone(source, kinds.PODS, shared)


async def test_a_token_that_is_due_is_renewed_and_ends_no_stream_and_no_pod(
    source: Client, fleet: Fleet, shared: str, streams: OpenStreams
) -> None:
    text, cluster = await kubeconfig(source, shared), f"{shared}/bad"
    first = str(kubeconfigs.token_in(text))
    old = aged(fleet, "c2", first)
    before = await source.get(kinds.TARGETS, "bad", shared)
    lists = await relists(fleet, cluster)
    assert lists
    await put(source, shared, text.replace(first.encode(), old.encode()))
    renewed = await kit.until_one(
        source,
        kinds.SECRETS,
        _SECRET,
        shared,
        lambda secret: token_in(secret) not in (first, old),
    )
    claims = expiry.claims(token_in(renewed))
    assert claims["exp"] - claims["iat"] == 86400
    assert claims["sub"] == expiry.claims(first)["sub"]
    lasting = await kit.until_one(
        source,
        kinds.TARGETS,
        "bad",
        shared,
        lambda target: (
            time.strftime("%Y-%m-%d %H:%M", time.gmtime(claims["exp"]))
            in (objects.condition(target, "CredentialsLast") or {}).get("message", "")
        ),
    )
    assert own.ready(lasting) == own.ready(before)
    await own.run_pod(source, shared, "after", **_THERE)
    await source.delete(kinds.PODS, "after", shared)
    await streams.go_on()
    assert await relists(fleet, cluster) == lists
    now = await source.get(kinds.PODS, "through-it-all", shared)
    assert kit.phase(now) == "Running"


async def test_a_token_that_is_replaced_under_load_fails_no_pod(
    source: Client, fleet: Fleet, shared: str, streams: OpenStreams
) -> None:
    """By hand this time, again and again, while pods come and go."""
    text, cluster = await kubeconfig(source, shared), f"{shared}/bad"
    first = str(kubeconfigs.token_in(text))
    lists = await relists(fleet, cluster)

    async def replace() -> None:
        for number in range(10):
            token = aged(fleet, "c2", first, hours=0.1 * number)
            await put(source, shared, text.replace(first.encode(), token.encode()))
            await asyncio.sleep(0.5)  # the pods flow meanwhile

    async def run(number: int) -> None:
        await asyncio.sleep(0.1 * number)
        await own.run_pod(source, shared, f"flow-{number}", **_THERE)
        await source.delete(kinds.PODS, f"flow-{number}", shared)

    async with asyncio.TaskGroup() as group:
        group.create_task(replace())
        for number in range(30):
            group.create_task(run(number))

    await streams.go_on()
    assert await relists(fleet, cluster) == lists


async def test_a_token_that_was_revoked_is_replaced_within_seconds(
    source: Client, fleet: Fleet, shared: str, streams: OpenStreams
) -> None:
    """Nothing is accepted of the link until the Secret has a good token again."""
    text = await kubeconfig(source, shared)
    first = str(kubeconfigs.token_in(text))
    refused = f"{first.rpartition('.')[0]}.bm9uc2Vuc2U"
    await put(source, shared, text.replace(first.encode(), refused.encode()))
    await kit.until_one(source, kinds.TARGETS, "bad", shared, own.is_because("Unauthorized"))
    await put(source, shared, text)
    await own.assert_connects(source, shared, seconds=own.AT_ONCE)
    await own.run_pod(source, shared, "after", **_THERE)
    await source.delete(kinds.PODS, "after", shared)
    await streams.go_on()
