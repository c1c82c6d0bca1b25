"""kubectl through a virtual node, on real API servers: logs, exec, attach, port-forward.

The delegates are pods of kwok, which serves a log file, local commands and an echo service.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest

from tests import certificates, kit, terminals
from tests.integration import kubelets
from tests.integration.kubelets import Setting
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.kube import endpoint
from vnode.kubelet.streams import http_upgrade
from vnode.telemetry import metrics

BOTH = pytest.mark.parametrize("spdy", [False, True], ids=["websocket", "spdy"])
KIB = 1024


@pytest.fixture
def fleet(kubelet_fleet: Fleet) -> Fleet:
    """Return two clusters with a kwok node each."""
    return kubelet_fleet


@pytest.fixture
async def node(fleet: Fleet) -> AsyncIterator[Setting]:
    """Yield a virtual node."""
    async with kubelets.virtual_node(fleet, f"v{os.urandom(3).hex()}") as setting:
        yield setting


@pytest.fixture
async def pod(node: Setting) -> AsyncIterator[str]:
    """Yield the name of a pod on the virtual node, whose delegate runs."""
    async with node.pod() as proxy:
        yield objects.name(proxy)


async def test_logs_are_those_of_the_delegate(node: Setting, pod: str):
    direct = await node.kubectl("logs", f"{pod}-child", cluster="c2")
    code, out, err = await node.kubectl("logs", pod)

    assert (code, err) == (0, b"")
    assert out
    assert out == direct[1]


async def test_log_options_take_effect(node: Setting, pod: str):
    everything = (await node.kubectl("logs", pod))[1].splitlines()

    last = (await node.kubectl("logs", pod, "--tail", "1"))[1].splitlines()
    few_bytes = (await node.kubectl("logs", pod, "--limit-bytes", "3"))[1]
    with_times = (await node.kubectl("logs", pod, "--timestamps"))[1].splitlines()
    none = (await node.kubectl("logs", pod, "--since-time", "2200-01-01T00:00:00Z"))[1]
    previous = (await node.kubectl("logs", pod, "--previous"))[1]

    assert last == everything[-1:]
    assert len(few_bytes) == 3
    assert len(with_times) == len(everything)
    assert with_times[0].endswith(everything[0])
    assert none == b""
    assert previous != b"\n".join(everything) + b"\n"


async def test_following_logs_shows_new_lines_and_ends_with_the_caller(
    node: Setting, pod: str, fleet: Fleet
):
    process = await node.started("logs", "-f", pod)
    assert process.stdout
    try:
        async with asyncio.timeout(kit.PATIENCE):
            await process.stdout.readline()
            with (fleet.folder / "c2" / "pods.log").open("a") as log:
                log.write("2100-01-01T00:00:00.000000000Z stdout F a-new-line\n")

            while await process.stdout.readline() != b"a-new-line\n":
                pass

        assert _open("containerLogs") == 1
    finally:
        with suppress(ProcessLookupError):
            process.terminate()

        await process.communicate()

    await _until_none_is_open("containerLogs")


async def test_logs_of_an_unknown_container_are_refused(node: Setting, pod: str):
    code, _out, err = await node.kubectl("logs", pod, "-c", "nobody")

    assert code == 1
    assert b"nobody" in err


async def test_logs_of_a_pod_without_a_delegate_say_so(node: Setting, pod: str):
    for key in list(node.link.chaperons.store):
        node.link.chaperons.store.pop(key)

    code, _out, err = await node.kubectl("logs", pod)

    assert code == 1
    assert b"no delegate" in err


@BOTH
async def test_exec_runs_in_the_target(node: Setting, pod: str, spdy: bool):
    code, out, err = await node.kubectl(
        "exec", pod, "--", "sh", "-c", "echo $CLUSTER; echo oops >&2", spdy=spdy
    )

    assert (code, out, err) == (0, b"c2\n", b"oops\n")


@BOTH
async def test_a_failing_command_fails_as_it_does_in_the_target(
    node: Setting, pod: str, spdy: bool
):
    words = ("--", "sh", "-c", "exit 42")
    there = await node.kubectl("exec", f"{pod}-child", *words, cluster="c2", spdy=spdy)

    here = await node.kubectl("exec", pod, *words, spdy=spdy)

    assert here[0] == there[0] != 0
    assert b"42" in here[2]


@BOTH
async def test_standard_input_arrives_unchanged(node: Setting, pod: str, spdy: bool):
    content = os.urandom(8 * KIB)  # kwok loses bytes of longer input over SPDY
    count = str(len(content))  # kwok does not tell a command that its input has ended

    code, out, _err = await node.kubectl(
        "exec", "-i", pod, "--", "head", "-c", count, stdin=content, spdy=spdy
    )

    assert code == 0
    assert out == content


@BOTH
async def test_words_and_odd_characters_of_a_command_arrive_unchanged(
    node: Setting, pod: str, spdy: bool
):
    words = ["a b", "c&d=e", "é", "%41", "+", "x" * 20_000]

    code, out, _err = await node.kubectl("exec", pod, "--", "printf", "%s\n", *words, spdy=spdy)

    assert code == 0
    assert out.decode().splitlines() == words


@BOTH
async def test_a_terminal_and_its_changes_of_size_arrive(node: Setting, pod: str, spdy: bool):
    words = ("exec", "-it", pod, "--", "sh", "-c", "while read x; do stty size; done")
    command = [*node.fleet.kubectl_command("c1"), *words]
    async with terminals.started(command, kubelets.environment(spdy=spdy), 40, 101) as terminal:
        await terminal.until_shown(b"40 101", typing=b"\n")
        terminal.resize(50, 132)
        await terminal.until_shown(b"50 132", typing=b"\n")


@BOTH
async def test_attach_shows_what_the_delegate_says(
    node: Setting, pod: str, fleet: Fleet, spdy: bool
):
    process = await node.started("attach", pod, spdy=spdy)
    assert process.stdout
    reading = asyncio.create_task(process.stdout.readline())
    try:
        async with asyncio.timeout(kit.PATIENCE):
            while not reading.done():
                with (fleet.folder / "c2" / "pods.log").open("a") as log:
                    log.write("2100-01-01T00:00:00.000000000Z stdout F still-here\n")

                await asyncio.wait([reading], timeout=0.3)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()

        _out, err = await process.communicate()

    # kwok needs inotify to attach; where the machine has none left, its complaint has to arrive.
    assert await reading == b"still-here\n" or b"too many open files" in err


@BOTH
async def test_port_forward_reaches_the_delegate(node: Setting, pod: str, spdy: bool):
    await _forward_and_echo(node, pod, spdy=spdy)


async def _forward_and_echo(node: Setting, pod: str, *, spdy: bool) -> None:
    process = await node.started("port-forward", pod, ":8080", spdy=spdy)
    assert process.stdout
    try:
        async with asyncio.timeout(kit.PATIENCE):
            shown = (await process.stdout.readline()).decode()
            port = int(shown.split(" -> ")[0].rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"echo this\n")
            assert await reader.readline() == b"echo this\n"
            writer.close()
            await writer.wait_closed()
    finally:
        with suppress(ProcessLookupError):
            process.terminate()

        await process.communicate()


@pytest.fixture
def protocols(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the API server asks this kubelet to speak, session by session; the list grows."""
    asked: list[str] = []
    build = http_upgrade.request

    def note(method, host, path, query, headers, own):
        pairs = list(headers)
        known = {name.lower(): value for name, value in pairs}
        asked.append(known.get("sec-websocket-protocol") or known["upgrade"])
        return build(method, host, path, query, pairs, own)

    monkeypatch.setattr(http_upgrade, "request", note)
    return asked


async def test_websockets_come_through_untranslated_once_the_node_declares_it(
    node: Setting, pod: str, protocols: list[str]
):
    words = ("exec", pod, "--", "sh", "-c", "echo $CLUSTER; exit 3")
    translated = await node.kubectl(*words)
    await node.declare("ExtendWebSocketsToKubelet")
    direct = await node.kubectl(*words)

    assert direct == translated
    assert direct[1] == b"c2\n"
    assert direct[0] != 0
    assert protocols == ["SPDY/3.1", "v5.channel.k8s.io"]


async def test_port_forward_comes_through_as_a_tunnel_once_the_node_declares_it(
    node: Setting, pod: str, protocols: list[str]
):
    await node.declare("ExtendWebSocketsToKubelet")

    await _forward_and_echo(node, pod, spdy=False)

    assert protocols == ["SPDY/3.1+portforward.k8s.io"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("with_uid", [False, True])
@pytest.mark.parametrize("route", ["exec", "attach", "portForward"])
async def test_each_way_to_ask_for_a_stream_opens_one(
    node: Setting, pod: str, fleet: Fleet, method: str, with_uid: bool, route: str
):
    proxy = await node.source.get(kinds.PODS, pod, "default")
    uid = f"/{objects.uid(proxy)}" if with_uid else ""
    container = "" if route == "portForward" else f"/{kubelets.CONTAINER}"
    query = "" if route == "portForward" else "?output=1&command=true"
    answer = await _upgraded(node, fleet, f"{method} /{route}/default/{pod}{uid}{container}{query}")

    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"\r\nupgrade: spdy/3.1\r\n" in answer.lower()


@pytest.mark.parametrize("route", ["exec", "attach", "portForward"])
async def test_another_uid_is_another_pod(node: Setting, pod: str, fleet: Fleet, route: str):
    container = "" if route == "portForward" else f"/{kubelets.CONTAINER}"
    query = "" if route == "portForward" else "?output=1&command=true"
    answer = await _upgraded(node, fleet, f"POST /{route}/default/{pod}/other{container}{query}")

    assert answer.startswith(b"HTTP/1.1 404 ")


async def _upgraded(node: Setting, fleet: Fleet, line: str) -> bytes:
    """Return the head of the answer to a request for SPDY, asked as the API server asks."""
    client = certificates.kubelet_client(fleet.folder / "c1" / "pki")
    reader, writer = await asyncio.open_connection(
        node.address, node.port, ssl=client.show(certificates.unverified())
    )
    protocol = "portforward.k8s.io" if "portForward" in line else "v4.channel.k8s.io"
    head = [
        f"{line} HTTP/1.1",
        "Host: node",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        f"X-Stream-Protocol-Version: {protocol}",
        "Content-Length: 0",
    ]
    writer.write("\r\n".join([*head, "", ""]).encode())
    async with asyncio.timeout(kit.PATIENCE):
        answer = await reader.readuntil(b"\r\n\r\n")

    writer.transport.abort()
    return answer


async def test_killing_kubectl_ends_the_session(node: Setting, pod: str):
    process = await node.started("exec", "-i", pod, "--", "sh", "-c", "echo up; sleep 30")
    assert process.stdout
    async with asyncio.timeout(kit.PATIENCE):
        assert await process.stdout.readline() == b"up\n"
        assert _open("exec") == 1

        process.kill()
        await process.communicate()
        await _until_none_is_open("exec")


async def _until_none_is_open(route: str) -> None:
    async with asyncio.timeout(kit.PATIENCE):
        while _open(route):  # noqa: ASYNC110 - a gauge has no event
            await asyncio.sleep(0.1)


def _open(route: str) -> float:
    return metrics.REGISTRY.get_sample_value("vnode_kubelet_streams_open", {"route": route}) or 0


async def test_a_target_that_cannot_be_reached_is_named(fleet: Fleet):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    nowhere = kubelets.with_token(
        endpoint.from_kubeconfig_file(fleet.kubeconfig("c2")), "secret-token"
    )
    nowhere = replace(nowhere, url=f"https://127.0.0.1:{port}")
    async with (
        fleet.client("c2") as there,
        kubelets.virtual_node(fleet, f"v{os.urandom(3).hex()}", target=nowhere) as node,
    ):
        node.target = there
        async with node.pod() as proxy:
            for words in (
                ("exec", objects.name(proxy), "--", "true"),
                ("logs", objects.name(proxy)),
            ):
                code, _out, err = await node.kubectl(*words)
                assert code == 1
                assert b"c2" in err
                assert b"cannot be reached" in err or b"Connect call failed" in err
                assert b"secret-token" not in err


async def test_streams_get_a_grace_when_the_server_stops(node: Setting, pod: str):
    process = await node.started("exec", "-i", pod, "--", "cat")
    assert process.stdin
    assert process.stdout
    async with asyncio.timeout(kit.PATIENCE):
        process.stdin.write(b"one\n")
        assert await process.stdout.readline() == b"one\n"

        node.serving.cancel()
        process.stdin.write(b"two\n")
        assert await process.stdout.readline() == b"two\n"
        await asyncio.wait([node.serving])
        await process.communicate()
