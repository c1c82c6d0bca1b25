"""The credentials of a plugin are renewed ahead of their end and after a 401, at a bounded rate."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from tests import answering
from vnode.api import objects
from vnode.api.errors import ConfigError, Denied, Unreachable
from vnode.kube import endpoint as endpoints
from vnode.kube import websockets
from vnode.kube.endpoint import Trust
from vnode.kube.exec_credentials import ExecSpec
from vnode.kube.exec_runs import ExecRunner, Execution, Lane
from vnode.kube.kubeconfig import Kubeconfig
from vnode.kube.plugin_credentials import PluginCredentials
from vnode.telemetry import metrics

V1 = "client.authentication.k8s.io/v1"


class PlayedRunner(ExecRunner):
    """Gives `token`, with a life in seconds if there is one, or fails; counts the runs."""

    def __init__(self, clock) -> None:
        super().__init__()
        self.token, self.failure, self.runs = "first", "", 0
        self.life: float | None = None
        self.runs_while_failing = 0
        self._clock = clock

    async def run(self, execution: Execution, *, lane: Lane = Lane.FIRST) -> bytes:
        self.runs += 1
        self.runs_while_failing += lane is Lane.FAILING
        await self._clock.sleep(0.1)
        if self.failure:
            raise Unreachable(self.failure)

        status = {"token": self.token}
        if self.life is not None:
            ends = self._clock.now() + timedelta(seconds=self.life)
            status["expirationTimestamp"] = objects.timestamp(ends)

        return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}).encode()


@pytest.fixture
def runner(clock) -> PlayedRunner:
    return PlayedRunner(clock)


@pytest.mark.looptime
async def test_all_requests_wait_for_one_run(clock, runner):
    credentials = PluginCredentials(ExecSpec("it"), runner, clock=clock)
    headers = await asyncio.gather(*(credentials() for _number in range(50)))
    assert set(headers) == {"Bearer first"}
    assert runner.runs == 1


@pytest.mark.looptime
async def test_runs_for_a_provider_are_counted_and_measured(clock, runner):
    credentials = PluginCredentials(ExecSpec("it", provider="counted"), runner, clock=clock)
    await credentials()
    runner.failure = "it broke"
    await clock.sleep(600)
    await credentials.refresh()
    name = "vnode_exec_plugin_run_duration_seconds"
    for outcome in ("succeeded", "failed"):
        labels = {"provider": "counted", "outcome": outcome}
        assert metrics.REGISTRY.get_sample_value(f"{name}_count", labels) == 1
        seconds = metrics.REGISTRY.get_sample_value(f"{name}_sum", labels)
        assert seconds == pytest.approx(0.1)


@pytest.mark.looptime
async def test_a_token_is_renewed_ahead_of_its_end_and_not_sooner(clock, runner):
    runner.life = 3600
    credentials = PluginCredentials(ExecSpec("it"), runner, clock=clock)
    await credentials()
    await clock.sleep(3500)
    runner.token = "second"
    assert await credentials() == "Bearer first"
    assert runner.runs == 1
    await clock.sleep(60)
    assert await credentials() == "Bearer second"


@pytest.mark.looptime
async def test_a_failure_leaves_the_last_token_until_its_end_and_the_plugin_in_peace(clock, runner):
    runner.life = 600
    reports = []
    credentials = PluginCredentials(
        ExecSpec("it"), runner, clock=clock, changed=lambda: reports.append(credentials.failure)
    )
    await credentials()
    runner.failure = "away"
    await clock.sleep(550)
    assert await credentials() == "Bearer first"
    assert credentials.failure == "away"
    await clock.sleep(60)
    for _second in range(600):
        with pytest.raises(Unreachable, match="away"):
            await credentials()

        await clock.sleep(1)

    assert runner.runs < 15
    assert runner.runs_while_failing == runner.runs - 2
    runner.failure = ""
    await clock.sleep(300)
    assert await credentials() == "Bearer first"
    assert reports == ["", "away", ""]


@pytest.mark.looptime
async def test_a_401_runs_the_plugin_once_and_then_at_a_bounded_rate(clock, runner):
    credentials = PluginCredentials(ExecSpec("it"), runner, clock=clock)
    first = await credentials()
    assert not await credentials.rejected(first)
    assert runner.runs == 2
    for _second in range(600):
        assert not await credentials.rejected(first)
        await clock.sleep(1)

    assert runner.runs < 10
    runner.token = "second"
    await clock.sleep(300)
    assert await credentials.rejected(first)
    runs = runner.runs
    assert await credentials.rejected(first), "what another request has renewed is tried"
    assert runner.runs == runs


@pytest.mark.looptime
async def test_a_run_after_a_401_that_is_broken_off_is_left_to_others(clock, runner):
    """A probe has less time than a plugin."""
    credentials = PluginCredentials(ExecSpec("it"), runner, clock=clock)
    first = await credentials()
    runner.token = "second"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await credentials.rejected(first)

    assert credentials.wanted.is_set()
    runs = runner.runs
    assert not await credentials.rejected(first)
    assert runner.runs == runs, "the rate is bounded all the same"
    assert await credentials() == "Bearer second"


@pytest.mark.looptime
async def test_credentials_that_have_ended_already_are_a_failure(clock, runner):
    runner.life = -5
    credentials = PluginCredentials(ExecSpec("it"), runner, clock=clock)
    with pytest.raises(Unreachable, match="ended already"):
        await credentials()


@pytest.mark.looptime
async def test_a_run_that_is_cancelled_leaves_the_next_one_free(clock, runner):
    credentials = PluginCredentials(ExecSpec("it"), runner, clock=clock)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await credentials()

    assert await credentials() == "Bearer first"


def plugin(folder: Path, text: str) -> dict[str, object]:
    """Return an exec section that runs a script of Python."""
    path = folder / "plugin.py"
    path.write_text(text)
    return {"command": sys.executable, "args": [str(path)], "apiVersion": V1}


def kubeconfig(user: dict[str, object]) -> str:
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": "https://c2.example"}}],
        "users": [{"name": "it", "user": user}],
    }
    return json.dumps(config)


PRINTS_TOKEN = """
import json, os
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
server = info["spec"].get("cluster", {}).get("server", "none")
token = os.environ.get("WORD", "-") + ":" + server
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential",
                  "status": {"token": token}}))
"""


async def test_the_plugin_of_a_kubeconfig_is_run(tmp_path):
    """What kubernetes-asyncio 36.1.0 fails at, with an AttributeError."""
    section = plugin(tmp_path, PRINTS_TOKEN)
    section |= {"env": [{"name": "WORD", "value": "yes"}], "provideClusterInfo": True}
    trust = Trust(commands=frozenset({sys.executable}))
    found = endpoints.from_kubeconfig(Kubeconfig.parse(kubeconfig({"exec": section})), trust=trust)
    assert await found.authorization() == "Bearer yes:https://c2.example"


async def test_a_plugin_that_gives_a_certificate_is_no_use_for_a_kubeconfig(tmp_path):
    status = '{"clientCertificateData": "c", "clientKeyData": "k"}'
    printed = f'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {status}}}'
    section = plugin(tmp_path, f"print('''{printed}''')")
    found = endpoints.from_kubeconfig(
        Kubeconfig.parse(kubeconfig({"exec": section})), trust=endpoints.OPERATOR
    )
    with pytest.raises(ConfigError, match="gave no token"):
        await found.authorization()


@pytest.mark.parametrize("how", ["request", "stream"])
async def test_a_request_that_is_refused_is_sent_again_with_a_new_token(how):
    shown: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        shown.append(request.headers["Authorization"])
        return web.json_response({"it": "works"}, status=200 if shown[-1] == "Bearer b" else 401)

    class Replaced:
        header = "Bearer a"

        async def __call__(self) -> str | None:
            return self.header

        async def rejected(self, header: str | None) -> bool:
            assert header == self.header
            self.header = after
            return after != header

    async with answering.client(answer, "c2") as client:
        after = "Bearer b"
        client.take_over(Replaced())
        if how == "request":
            assert await client.request("GET", "/") == {"it": "works"}
        else:
            async with client.stream("GET", "/", query={}, silence=None) as response:
                assert await response.json() == {"it": "works"}

        assert shown == ["Bearer a", "Bearer b"]
        shown.clear()
        after = "Bearer c"
        client.take_over(Replaced())
        with pytest.raises(Denied):
            await client.request("GET", "/")

        assert shown == ["Bearer a", "Bearer c"], "once more, and no oftener"


async def test_a_web_socket_that_is_refused_is_opened_with_a_new_token():
    shown: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        shown.append(request.headers["Authorization"])
        if shown[-1] != "Bearer b":
            return web.Response(status=401)

        socket = web.WebSocketResponse(protocols=("it",))
        await socket.prepare(request)
        await socket.send_str("works")
        await socket.close()
        return socket

    class Replaced:
        header = "Bearer a"

        async def __call__(self) -> str | None:
            return self.header

        async def rejected(self, header: str | None) -> bool:
            self.header = "Bearer b"
            return header == "Bearer a"

    async with answering.client(answer, "c2") as client:
        client.take_over(Replaced())
        async with websockets.connect(client, "/", (), "it") as socket:
            assert await socket.receive_str() == "works"

    assert shown == ["Bearer a", "Bearer b"]
