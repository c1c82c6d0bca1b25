"""Counting: cheap, complete, and without series of what is no more."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest

from vnode.api import kinds
from vnode.kube import informer, watching
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.telemetry import metrics


def sample(name: str, **labels: str) -> float | None:
    return metrics.REGISTRY.get_sample_value(name, labels)


def test_requests_are_counted_by_verb_and_code_and_measured_if_answered():
    requests = metrics.Requests("counted")
    requests.answered("GET", 200, 0.3)
    requests.answered("GET", 404, 0.1)
    requests.unanswered("GET")
    total = "vnode_api_requests_total"
    assert sample(total, cluster="counted", verb="GET", code="200") == 1
    assert sample(total, cluster="counted", verb="GET", code="404") == 1
    assert sample(total, cluster="counted", verb="GET", code="none") == 1
    duration = "vnode_api_request_duration_seconds"
    assert sample(f"{duration}_count", cluster="counted", verb="GET") == 2
    assert sample(f"{duration}_sum", cluster="counted", verb="GET") == pytest.approx(0.4)


def test_a_lag_is_measured_from_its_first_start_and_once(monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    before = sample("vnode_feedback_lag_seconds_sum") or 0.0
    lags = metrics.Lags(metrics.FEEDBACK_SECONDS)
    lags.start("a")
    now = 2.0
    lags.start("a")
    lags.start("b")
    lags.forget("b")
    now = 5.0
    for key in ("a", "a", "b"):
        lags.stop(key)

    assert (sample("vnode_feedback_lag_seconds_sum") or 0.0) - before == 5.0


def test_an_extension_point_is_measured_also_if_it_breaks():
    name = "vnode_scheduling_extension_point_duration_seconds_count"
    before = sample(name, extension_point="Tested") or 0.0
    with pytest.raises(RuntimeError), metrics.extension_point("Tested"):
        raise RuntimeError

    assert sample(name, extension_point="Tested") == before + 1


async def anonymous() -> str | None:
    """No credentials."""
    return None


class Silent(Client):
    """An API server that lists one object and then says nothing."""

    async def list_at(self, *_kind: Any, **_selectors: Any) -> Any:
        return [{"metadata": {"name": "a", "resourceVersion": "1"}}], "1"


async def test_informers_of_one_kind_share_a_series_that_ends_with_them(
    monkeypatch: pytest.MonkeyPatch,
):
    async def nothing(*_words: Any) -> Any:
        await asyncio.Event().wait()
        yield []

    monkeypatch.setattr(watching, "stream", nothing)
    client = Silent(Endpoint("http://192.0.2.1", None, anonymous), name="silent")
    running = [informer.Informer(client, kinds.PODS) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.run(), name="informer") for one in running]
        for one in running:
            await one.synced.wait()

        informer.measure()
        assert sample("vnode_informer_objects", cluster="silent", resource="pods") == 2
        silence = sample("vnode_informer_silence_seconds", cluster="silent", resource="pods")
        assert silence is not None
        assert silence >= 0
        for task in tasks:
            task.cancel()

    informer.measure()
    assert sample("vnode_informer_objects", cluster="silent", resource="pods") is None
    assert sample("vnode_informer_silence_seconds", cluster="silent", resource="pods") is None


def test_results_that_alerts_wait_for_are_there_before_the_first_of_them():
    """In a new process, since a counter stays once something was counted."""
    code = "from vnode.telemetry import metrics as m; print(m.generate_latest(m.REGISTRY).decode())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for result in ("bound", "unschedulable", "error"):
        assert f'vnode_scheduling_attempts_total{{result="{result}"}} 0.0' in done.stdout
