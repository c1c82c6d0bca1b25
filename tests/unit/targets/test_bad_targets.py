"""Whatever is wrong with one target, its fault is its own: the agent says so, and runs on.

The parts that meet a target run together here, as they do in the leader: connections, and what
follows pods. The cluster that they run in is a server that has one Target, and nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import answering
from tests.answering import Answer
from tests.apiserver.server import APIServer
from tests.permitted import all_namespaces
from vnode.agent.config import AgentConfig
from vnode.api import keys, kinds
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.following import remote_copies
from vnode.following.config import FollowingConfig
from vnode.following.following import Following
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.reflector import Reflector
from vnode.runtime.link_health import CONNECTING
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise
from vnode.targets import probing
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister

KEY = TargetKey("team", "bad")
READ = {
    *("podchaperons", "clustersummaries"),
    *("configmaps", "secrets", "persistentvolumeclaims", "services", "ingresses"),
}
EMPTY = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}


def kubeconfig(cluster: Object, user: Object) -> Object:
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
    }


def source(config: Object) -> APIServer:
    """Make the API server of the source, with a Target and its Secret."""
    server = APIServer("c1", SystemClock())
    server.add(kinds.NAMESPACES, {"metadata": {"name": KEY.namespace}})
    data = base64.b64encode(json.dumps(config).encode()).decode()
    metadata = {"namespace": KEY.namespace, "name": "s"}
    server.add(kinds.SECRETS, {"metadata": metadata, "data": {"config": data}})
    annotations = {keys.TOKENS: "source=api:6443", keys.STORAGE_CLASSES: ""}
    head = {"namespace": KEY.namespace, "name": KEY.name, "annotations": annotations}
    spec = {"kubeconfigSecret": {"name": "s"}}
    server.add(kinds.TARGETS, {"metadata": head, "spec": spec})
    return server


SETTINGS = AgentConfig(exec_commands=("true",))


class Agent:
    """The parts that run; knows which kinds of the target's objects have been tried to be read."""

    def __init__(self, local: Client) -> None:
        identity, clock = Identity("c1", "u"), SystemClock()
        self.known, self.links = TargetLister(local), Links()
        self.controller = TargetController(
            *(local, identity, self.known, self.links), clock=clock, trust=SETTINGS.trust_in
        )
        self.following = Following(
            *(local, self.links, identity, FollowingConfig()),
            relabel=lambda own, _kept: own,
            target_exists=lambda _node: True,
            enabled_namespaces=all_namespaces(),
            complete=lambda _node, _namespace: True,
            events=EventRecorder(local, "test"),
            clock=clock,
        )
        self.controller.findings.changed.add(lambda _key: self._news.set())
        self.met: set[str] = set()
        self._news = asyncio.Event()

    def meet(self, reflector: Reflector) -> None:
        cluster, plural = reflector.series
        if cluster == str(KEY):
            self.met.add(plural)
            self._news.set()

    @property
    def ready(self) -> Object:
        """The Target's condition."""
        found = self.controller.findings.get(KEY)
        return found.conditions[0] if found else {}

    @property
    def refused(self) -> str:
        """Why the Target is not connected to at all."""
        return self.ready["message"] if self.ready.get("reason") == "Invalid" else ""

    @property
    def judged(self) -> bool:
        """The Target says more than that it is being connected to."""
        return self.ready.get("reason", CONNECTING) != CONNECTING

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once that holds."""
        async with asyncio.timeout(60):  # a list without an end has a thousand pages
            while not holds():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def agent(config: Object) -> AsyncIterator[Agent]:
    """Yield one that leads a source with such a kubeconfig in its one Target's Secret.

    The end of the block raises if any of its tasks has ended.
    """
    parts = Agent(source(config).client())
    with pytest.MonkeyPatch.context() as patch:
        for method in (Reflector._fail, Reflector._succeeded):
            patch.setattr(Reflector, method.__name__, noting(method, parts))

        patch.setattr(socket, "getaddrinfo", addresses_only)
        patch.setattr(probing, "_RETRY", 0.01)
        async with supervise() as tasks:
            tasks.start(parts.known.run(), "known")
            tasks.start(parts.controller.run(), "controller")
            tasks.start(parts.following.run(), "following")
            yield parts


def noting(method: Callable[..., Any], parts: Agent) -> Callable[..., Any]:
    """Return the method of a reflector, which has met its server by then."""

    def called(reflector: Reflector, *args: Any) -> Any:
        parts.meet(reflector)
        return method(reflector, *args)

    return called


_getaddrinfo = socket.getaddrinfo


def addresses_only(host: Any, *args: Any, **options: Any) -> Any:
    """Look no name up, which takes seconds."""
    return _getaddrinfo(host, *args, **{**options, "flags": socket.AI_NUMERICHOST})


words = st.sampled_from(["", "x", "a..b", ".foo", "a\0b", "x" * 64, "ü", "a b", "[::1]", "%", "\n"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words | st.text()
nonsense = scalars | st.lists(scalars, max_size=2) | st.dictionaries(words, scalars, max_size=2)
CLUSTER = ["tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data"]
USER = ["token", "username", "password", "exec", "auth-provider", "client-certificate-data"]


def runs(config: Object, answer: Answer | None = None) -> str:
    """Have an agent meet a target, and see that it runs on; why it refused to, if it did.

    It has met one that answers once all that reads from it has had an answer.
    """

    async def run() -> str:
        async with AsyncExitStack() as stack:
            if answer is not None:
                where = await stack.enter_async_context(answering.endpoint(recognized(answer)))
                config["clusters"][0]["cluster"]["server"] = where.url

            parts = await stack.enter_async_context(agent(config))
            await parts.until(lambda: parts.judged if answer is None else parts.met >= READ)
            return parts.refused

    return asyncio.run(run())


def recognized(answer: Answer) -> Answer:
    """Return a handler that gives that answer to all requests but those of the probe.

    The probe finds a cluster that does not say who it is.
    """

    async def answered(request: web.Request) -> web.StreamResponse:
        if request.path.endswith((f"/{keys.SUMMARY_NAME}", "/kube-system")):
            missing = {"kind": "Status", "code": 404, "message": keys.SUMMARY_NAME}
            return web.json_response(missing, status=404)

        return web.json_response({}) if request.method == "POST" else await answer(request)

    return answered


@pytest.mark.parametrize("name", [5, ["x"], ".foo", "a\0b"])
def test_a_name_for_tls_that_is_none(name: Any) -> None:
    cluster = {"server": "https://127.0.0.1:1", "tls-server-name": name}
    assert "tls-server-name" in runs(kubeconfig(cluster, {}))


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_that_is_none(host: str) -> None:
    assert "host" in runs(kubeconfig({"server": f"https://{host}:6443"}, {}))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["https://127.0.0.1:1", "http://127.0.0.1:1"]) | words.map("https://{}".format),
    st.dictionaries(st.sampled_from(CLUSTER), nonsense, max_size=2),
    st.dictionaries(st.sampled_from(USER), nonsense, max_size=2),
)
def test_a_kubeconfig_with_nonsense_in_it(server: str, cluster: Object, user: Object) -> None:
    runs(kubeconfig({"server": server, **cluster}, user))


metadata = st.fixed_dictionaries({}, optional={"continue": nonsense, "resourceVersion": nonsense})
lists = st.fixed_dictionaries(
    {"kind": st.just("List"), "metadata": metadata | nonsense, "items": nonsense}
)
events = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "?"]),
        "object": st.fixed_dictionaries({"metadata": metadata | nonsense}) | nonsense,
    }
)
texts = st.binary(max_size=40)


@pytest.mark.no_cover
@settings(max_examples=60, deadline=None)
@given(lists.map(json.dumps).map(str.encode) | texts)
@example(b'{"kind": "List", "metadata": {}, "items": ["\xff"]}')
@example(b'{"kind": "List", "metadata": {"continue": {"a": 1}}, "items": []}')
@example(b'{"kind": "List", "metadata": {"continue": true}, "items": []}')
def test_answers_that_are_nonsense(body: bytes) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query.get("limit") == "1":  # there is something, so that it is listed
            return web.json_response(EMPTY | {"items": [{}]})

        return web.Response(body=body)

    runs(kubeconfig({}, {}), answer)


@pytest.mark.no_cover
@settings(max_examples=60, deadline=None)
@given(events.map(json.dumps).map(str.encode) | texts)
@example(b'{"type": "BOOKMARK", "object": {"metadata": ["7"]}}')
@example(b'{"type": "ADDED", "object": {"kind": "\xff"}}')
def test_events_that_are_nonsense(line: bytes) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return web.Response(body=line + b"\n")

        items = [{}] if request.query.get("limit") == "1" else []  # so that there is a watch
        return web.json_response(EMPTY | {"items": items})

    runs(kubeconfig({}, {}), answer)


async def test_a_fault_of_our_own_about_one_target_is_told_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = asyncio.Event()
    metadata = {"name": keys.SUMMARY_NAME, "uid": "1", "resourceVersion": "1"}
    summary = {"metadata": metadata, "capacity": {}, "allocatable": {}}

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await over.wait()
            return response

        if request.path.endswith("accessreviews"):
            return web.json_response({"status": {"allowed": True}})

        if request.path.endswith(keys.SUMMARY_NAME) or request.method == "POST":
            return web.json_response(summary)

        items = [summary] if request.path.endswith("/clustersummaries") else []
        return web.json_response(EMPTY | {"items": items})

    async def fail(*_args: Any) -> bool:
        raise KeyError("secret")

    async with answering.endpoint(answer) as where:
        with monkeypatch.context() as patch:
            patch.setattr(remote_copies, "has_none", fail)
            async with agent(kubeconfig({"server": where.url}, {})) as parts:
                await parts.until(lambda: parts.ready.get("reason") == "Failing")
                message = parts.ready["message"]
                assert "copies-admiralty-team-bad" in message
                assert "unexpected KeyError: see the agent's log; it is retried" in message
                patch.undo()
                await parts.until(lambda: parts.ready.get("reason") == "Connected")

        over.set()


def test_a_command_for_cluster_targets_is_none_for_targets() -> None:
    """Users of a Target's namespace choose its arguments."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}
    refused = runs(kubeconfig({"server": "https://127.0.0.1:1"}, {"exec": plugin}))
    assert "runs the exec plugin 'true'" in refused
    assert "(namespacedExecCommands)" in refused


def test_which_commands_a_target_may_run_is_a_setting_of_its_own() -> None:
    config = AgentConfig(exec_commands=("a",), namespaced_exec_commands=("b",))
    assert config.trust_in(TargetKey("", "x")).commands == {"a"}
    assert config.trust_in(TargetKey("team", "x")).commands == {"b"}
    assert not AgentConfig().trust_in(TargetKey("", "x")).commands
    assert not config.trust_in(TargetKey("", "x")).files
