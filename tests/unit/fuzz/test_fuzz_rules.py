"""What the fuzzer calls wrong: if it saw nothing, all inputs would be harmless."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import time

import pytest

from tests.apiserver import resources
from tests.fuzz.agents import AgentProcess
from tests.fuzz.measuring import LIMIT, LoopMeter
from tests.fuzz.rules import RequestRules
from vnode.api import kinds

NAMESPACES = {"agent": None, "canary": frozenset({"canary"})}


def rules_of(method, path, user="agent"):
    """Return the rules that a request breaks."""
    rules = RequestRules(dict(NAMESPACES))
    rules.see("source", user, method, path)
    return [finding.rule for finding in rules.take()]


@pytest.mark.parametrize("kind", resources.ALL, ids=lambda kind: kind.plural)
def test_the_paths_of_all_kinds_are_known(kind):
    namespace = "team-a" if kind.namespaced else None
    for path in (kind.path(), kind.path(namespace), kind.path(namespace, "web", "status")):
        assert rules_of("GET", path) == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/a/pods/../secrets/b",
        "/api/v1/namespaces/../pods/b",
        "/api/v1/namespaces/a/pods/b%2fc",
        "/api/v1/namespaces/a/pods/",
        "/api/v1/namespaces//pods/b",
        "/api/v1/namespaces/a/pods/b/exec/c",
        "/api/v1/namespaces/a/pods/b?c",
        "/metrics",
        "/",
    ],
)
def test_a_path_that_is_none_is_found(path):
    assert rules_of("GET", path) == ["no path is made of what others wrote"]


@pytest.mark.parametrize(
    ("user", "path", "is_wrong"),
    [
        ("agent", kinds.PODS.path("team-a", "web"), False),
        ("agent", kinds.NODES.path(None, "a"), False),
        ("agent", kinds.PODS.path("bystander", "web"), True),
        ("agent", kinds.SECRETS.path("kube-system", "web"), True),
        ("canary", kinds.PODS.path("canary", "web"), False),
        ("canary", kinds.PODS.path("tenant", "web"), True),
        ("canary", kinds.NODES.path(None, "a"), True),
    ],
)
def test_a_write_where_somebody_has_no_business_is_found(user, path, is_wrong):
    expected = ["nobody writes where they have no business"] if is_wrong else []
    assert rules_of("PATCH", path, user) == expected
    assert rules_of("GET", path, user) == []


@pytest.fixture
def agent(tmp_path):
    return AgentProcess("source", "http://127.0.0.1:1", "token", "127.0.0.1", tmp_path)


@pytest.mark.parametrize(
    ("record", "count"),
    [
        ({"level": "info", "msg": "all is well"}, 0),
        ({"level": "warning", "msg": "a target does not answer"}, 0),
        ({"level": "error", "msg": "a task failed"}, 1),
        ({"level": "warning", "msg": "it failed", "error": "Traceback ..."}, 1),
        ({"level": "warning", "msg": "c1: unexpected KeyError", "error": "Traceback ..."}, 0),
    ],
)
def test_errors_and_tracebacks_in_the_log_are_found_once(agent, tmp_path, record, count):
    with (tmp_path / "source/agent.log").open("a") as log:
        log.write(json.dumps(record) + "\n" + '{"level": "error", "msg": "half a li')

    assert len(agent.findings()) == count
    assert agent.findings() == []
    assert agent.guarded == ("unexpected" in record["msg"])


def test_what_is_no_line_of_the_log_is_found(agent, tmp_path):
    (tmp_path / "source/agent.log").write_text("Task exception was never retrieved\n")
    assert [finding.rule for finding in agent.findings()] == ["nothing unexpected is logged"]


def test_a_callback_that_takes_too_much_of_the_processor_is_found(monkeypatch, agent, tmp_path):
    monkeypatch.setattr(asyncio.Handle, "_run", asyncio.Handle._run)
    collecting = len(gc.callbacks)
    report = io.StringIO()
    LoopMeter(report, LIMIT).install()

    async def work():
        end = time.thread_time() + 1.5 * LIMIT
        while time.thread_time() < end:
            pass

    asyncio.run(work())
    del gc.callbacks[collecting:]
    (tmp_path / "source/callbacks.json").write_text(report.getvalue())
    assert "the event loop is never blocked" in [each.rule for each in agent.findings()]
    assert agent.longest > LIMIT


def test_a_garbage_collection_in_another_thread_is_not_its_callbacks_own_time(monkeypatch):
    monkeypatch.setattr(asyncio.Handle, "_run", asyncio.Handle._run)
    collecting = len(gc.callbacks)
    report = io.StringIO()
    LoopMeter(report, 0.0).install()

    async def collect():
        kept = [[number] for number in range(100_000)]
        before = time.thread_time()
        gc.collect()
        return time.thread_time() - before, kept

    async def elsewhere():
        return await asyncio.to_thread(asyncio.run, collect())

    took, _kept = asyncio.run(elsewhere())
    del gc.callbacks[collecting:]
    assert max(json.loads(line)["collecting"] for line in report.getvalue().splitlines()) > took / 2


@pytest.mark.parametrize(
    ("seconds", "collecting", "is_found"),
    [(0.04, 0.0, False), (0.06, 0.0, True), (0.14, 0.1, False), (0.25, 0.22, True)],
)
def test_a_garbage_collection_is_not_the_callbacks_own_time(
    agent, tmp_path, seconds, collecting, is_found
):
    line = {"seconds": seconds, "collecting": collecting, "what": "a callback", "stack": ""}
    (tmp_path / "source/callbacks.json").write_text(json.dumps(line) + "\n")
    found = [finding.rule for finding in agent.findings()]
    assert ("the event loop is never blocked" in found) == is_found


def test_a_run_beside_other_suites_allows_callbacks_more(agent, tmp_path):
    agent.callback_limit = 0.3
    lines = [
        {"seconds": seconds, "collecting": 0.0, "what": "a callback", "stack": ""}
        for seconds in (0.29, 0.31)
    ]
    (tmp_path / "source/callbacks.json").write_text(
        "".join(json.dumps(each) + "\n" for each in lines)
    )
    (found,) = agent.findings()
    assert "0.310 s" in found.text
