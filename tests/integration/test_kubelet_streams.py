"""kubectl through a virtual node, on real API servers: logs, exec, attach, port-forward.

The delegates are pods of kwok, which serves a log file, local commands and an echo service.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import socket
import struct
import termios
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration import kubelets
from tests.integration.kubelets import Setting
from tests.kit import Fleet

BOTH = pytest.mark.parametrize("spdy", [False, True], ids=["websocket", "spdy"])
KIB = 1024


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Iterator[Fleet]:
    """Two clusters with a kwok node each; an existing one if $VNODE_TEST_FLEET names its folder."""
    if existing := os.environ.get("VNODE_TEST_FLEET"):
        yield Fleet(Path(existing))
        return

    fleet = Fleet(tmp_path_factory.mktemp("kubelet"))
    try:
        fleet.run("up", "c1", "c2", "--nodes", "1")
        yield fleet
    finally:
        fleet.run("down")


@pytest.fixture
async def node(fleet: Fleet) -> AsyncIterator[Setting]:
    """A virtual node with the pod `web`."""
    async with kubelets.virtual_node(fleet, f"v{os.urandom(3).hex()}") as setting:
        await setting.pod("web")
        try:
            yield setting
        finally:
            await setting.remove("web")


async def test_logs_are_those_of_the_delegate(node: Setting):
    direct = await node.kubectl("logs", "web-delegate", cluster="c2")
    code, out, err = await node.kubectl("logs", "web")

    assert (code, err) == (0, b"")
    assert out
    assert out == direct[1]


async def test_log_options_take_effect(node: Setting):
    everything = (await node.kubectl("logs", "web"))[1].splitlines()

    last = (await node.kubectl("logs", "web", "--tail", "1"))[1].splitlines()
    few_bytes = (await node.kubectl("logs", "web", "--limit-bytes", "3"))[1]
    with_times = (await node.kubectl("logs", "web", "--timestamps"))[1].splitlines()
    none = (await node.kubectl("logs", "web", "--since-time", "2100-01-01T00:00:00Z"))[1]
    previous = (await node.kubectl("logs", "web", "--previous"))[1]

    assert last == everything[-1:]
    assert len(few_bytes) == 3
    assert len(with_times) == len(everything)
    assert with_times[0].endswith(everything[0])
    assert none == b""
    assert previous != b"\n".join(everything) + b"\n"


async def test_following_logs_shows_new_lines_and_ends_with_the_caller(node: Setting, fleet: Fleet):
    process = await node.started("logs", "-f", "web")
    assert process.stdout
    try:
        async with asyncio.timeout(15):
            await process.stdout.readline()
            with (fleet.folder / "c2" / "pods.log").open("a") as log:
                log.write("2100-01-01T00:00:00.000000000Z stdout F a-new-line\n")

            while await process.stdout.readline() != b"a-new-line\n":
                pass
    finally:
        process.terminate()
        await process.communicate()


async def test_logs_of_an_unknown_container_are_refused(node: Setting):
    code, _out, err = await node.kubectl("logs", "web", "-c", "nobody")

    assert code == 1
    assert b"nobody" in err


async def test_logs_of_a_pod_without_a_delegate_say_so(node: Setting):
    for key in list(node.link.chaperons.store):
        node.link.chaperons.store.pop(key)

    code, _out, err = await node.kubectl("logs", "web")

    assert code == 1
    assert b"no delegate" in err


@BOTH
async def test_exec_runs_in_the_target(node: Setting, spdy: bool):
    code, out, err = await node.kubectl(
        "exec", "web", "--", "sh", "-c", "echo $CLUSTER; echo oops >&2", spdy=spdy
    )

    assert (code, out, err) == (0, b"c2\n", b"oops\n")


@BOTH
async def test_the_exit_code_of_exec_arrives(node: Setting, spdy: bool):
    code, _out, err = await node.kubectl("exec", "web", "--", "sh", "-c", "exit 42", spdy=spdy)

    assert code == 42
    assert b"exit code 42" in err


@BOTH
async def test_standard_input_arrives_and_its_end_ends_the_command(node: Setting, spdy: bool):
    content = os.urandom(300 * KIB)

    code, out, _err = await node.kubectl("exec", "-i", "web", "--", "cat", stdin=content, spdy=spdy)

    assert code == 0
    assert out == content


@BOTH
async def test_words_and_odd_characters_of_a_command_arrive_unchanged(node: Setting, spdy: bool):
    words = ["a b", "c&d=e", "é", "%41", "+", "x" * 20_000]

    code, out, _err = await node.kubectl("exec", "web", "--", "printf", "%s\n", *words, spdy=spdy)

    assert code == 0
    assert out.decode().splitlines() == words


@BOTH
async def test_a_terminal_and_its_changes_of_size_arrive(node: Setting, spdy: bool):
    outer, inner = pty.openpty()
    _resize(outer, 40, 101)
    process = await asyncio.create_subprocess_exec(
        *node.fleet.kubectl_command("c1"),
        *("exec", "-it", "web", "--", "sh", "-c", "stty size; read x; stty size; exit 3"),
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=kubelets.environment(spdy=spdy),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inner)
    try:
        await _until_shown(outer, b"40 101")
        _resize(outer, 50, 132)
        await asyncio.sleep(0.5)  # the new size travels beside the input, not with it
        os.write(outer, b"go on\n")
        await _until_shown(outer, b"50 132")
        async with asyncio.timeout(10):
            assert await process.wait() == 3
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

        os.close(outer)


def _resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def _until_shown(terminal: int, text: bytes) -> None:
    seen = b""
    async with asyncio.timeout(15):
        while text not in seen:
            seen += await asyncio.to_thread(os.read, terminal, 4096)


@BOTH
async def test_attach_shows_the_output_of_the_delegate(node: Setting, spdy: bool):
    process = await node.started("attach", "web", spdy=spdy)
    assert process.stdout
    try:
        async with asyncio.timeout(15):
            assert await process.stdout.readline()
    finally:
        process.terminate()
        await process.communicate()


@BOTH
async def test_port_forward_reaches_the_delegate(node: Setting, spdy: bool):
    process = await node.started("port-forward", "web", ":8080", spdy=spdy)
    assert process.stdout
    try:
        async with asyncio.timeout(15):
            shown = (await process.stdout.readline()).decode()
            port = int(shown.split(" -> ")[0].rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"echo this\n")
            assert await reader.readline() == b"echo this\n"
            writer.close()
            await writer.wait_closed()
    finally:
        process.terminate()
        await process.communicate()


async def test_killing_kubectl_ends_the_command_in_the_target(node: Setting, tmp_path: Path):
    alive = tmp_path / "alive"
    script = f"trap 'rm {alive}; exit' TERM HUP INT PIPE; touch {alive}; echo up; cat; rm {alive}"
    process = await node.started("exec", "-i", "web", "--", "sh", "-c", script)
    assert process.stdout
    async with asyncio.timeout(20):
        assert await process.stdout.readline() == b"up\n"
        process.kill()
        await process.wait()
        async with asyncio.timeout(5):
            while alive.exists():
                await asyncio.sleep(0.1)

    process._transport.close()  # type: ignore[attr-defined]


async def test_a_target_that_cannot_be_reached_is_named(fleet: Fleet):
    from vnode.kube import endpoint

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    nowhere = kubelets.with_token(
        endpoint.from_kubeconfig_file(fleet.kubeconfig("c2")), "secret-token"
    )
    nowhere = kubelets.replace(nowhere, url=f"https://127.0.0.1:{port}")
    async with (
        fleet.client("c2") as there,
        kubelets.virtual_node(fleet, f"v{os.urandom(3).hex()}", target=nowhere) as node,
    ):
        node.target = there
        await node.pod("lost")
        try:
            for words in (("exec", "lost", "--", "true"), ("logs", "lost")):
                code, _out, err = await node.kubectl(*words)
                assert code == 1
                assert b"c2" in err
                assert b"cannot be reached" in err or b"Connect call failed" in err
                assert b"secret-token" not in err
        finally:
            await node.remove("lost")


async def test_streams_get_a_grace_when_the_server_stops(node: Setting):
    process = await node.started("exec", "-i", "web", "--", "cat")
    assert process.stdin
    assert process.stdout
    async with asyncio.timeout(20):
        process.stdin.write(b"one\n")
        assert await process.stdout.readline() == b"one\n"

        node.serving.cancel()
        process.stdin.write(b"two\n")
        assert await process.stdout.readline() == b"two\n"
        await asyncio.wait([node.serving])
        await process.communicate()

    assert process.returncode != 0
