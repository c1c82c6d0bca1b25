"""Counting: cheap, complete, and without series of what is no more."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from tests.unit.scheduling import costs
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kube import informer, watching
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint, Trust
from vnode.kube.request_metrics import RequestMetrics
from vnode.runtime.links import Links
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister
from vnode.telemetry import metrics, target_series


def sample(name: str, **labels: str) -> float | None:
    return metrics.REGISTRY.get_sample_value(name, labels)


OF_TARGETS = [
    metric
    for metric in vars(metrics).values()
    if {"api_server", "target"} & set(getattr(metric, "_labelnames", ()))
]


def count_of_target(target: str) -> None:
    """Have a sample in each metric that has some for each target."""
    for metric in OF_TARGETS:
        metric.labels(target, *metric._labelnames[1:])


def series_of(target: str) -> set[str]:
    """List the metrics in which a target occurs."""
    return {
        sample.name
        for family in metrics.REGISTRY.collect()
        for sample in family.samples
        if target in sample.labels.values()
    }


async def test_the_series_of_a_target_go_with_it():
    """Whoever makes Targets under ever new names would have the agent keep series without end."""
    for target in ("team/gone", "team/stays"):
        count_of_target(target)

    before, client = series_of("team/stays"), APIServer("c1", SystemClock()).client()
    parts = client, Identity("c1", "u"), TargetLister(client), Links()
    controller = TargetController(*parts, clock=SystemClock(), trust=lambda _key: Trust())
    await controller._forget(TargetKey("team", "gone"))
    assert series_of("team/gone") == set()
    assert series_of("team/stays") == before
    target_series.forget("team/stays")


def test_the_series_of_other_targets_are_not_looked_at_when_one_goes():
    """Whoever deletes Targets would have all wait for what all Targets have."""
    targets = [f"team/t{number}" for number in range(300)]
    costs_of = []
    for count in (1, 300):
        for target in targets[:count]:
            target_series.expect(target)
            count_of_target(target)

        costs_of.append(costs.bytecodes(lambda: target_series.forget(targets[0])))

    assert costs_of[1] < 1.2 * costs_of[0]
    for target in targets:
        target_series.forget(target)


async def test_a_target_that_cannot_be_connected_at_all_is_unhealthy_until_it_is_gone() -> None:
    client, key = APIServer("c1", SystemClock()).client(), TargetKey("team", "gone")
    target_series.expect(str(key))
    parts = client, Identity("c1", "u"), TargetLister(client), Links()
    controller = TargetController(*parts, clock=SystemClock(), trust=lambda _key: Trust())
    target = {"metadata": {"name": "gone", "namespace": "team"}, "spec": {}}
    controller._set_problem(key, target, "Invalid", "there is no Secret")
    assert sample("vnode_target_healthy", target="team/gone") == 0
    await controller._forget(key)
    assert sample("vnode_target_healthy", target="team/gone") is None


def test_every_metric_that_has_a_label_for_a_target_is_forgotten_with_it():
    count_of_target("team/gone")
    target_series.forget("team/gone")
    assert series_of("team/gone") == set()


def test_what_is_counted_of_a_target_that_is_gone_makes_no_series():
    """A request may be under way; who makes Targets under ever new names makes no more of them."""
    counts = RequestMetrics("team/gone")
    counts.answered("get", 200, 0.1)
    target_series.forget("team/gone")
    counts.answered("get", 404, 0.1)
    RequestMetrics("team/gone").unanswered("list")
    assert series_of("team/gone") == set()
    target_series.expect("team/gone")
    RequestMetrics("team/gone").unanswered("list")
    assert "vnode_api_requests_total" in series_of("team/gone")
    target_series.forget("team/gone")


def test_a_target_that_is_called_as_the_own_api_server_takes_nothing_away():
    RequestMetrics(target_series.LOCAL).unanswered("list")
    before = series_of(target_series.LOCAL)
    target_series.forget(target_series.LOCAL)
    assert series_of(target_series.LOCAL) == before != set()


def test_only_so_many_targets_that_are_gone_are_remembered():
    for number in range(target_series.MOST_GONE + 10):
        target_series.forget(f"team/t{number}")

    assert len(target_series._gone) == target_series.MOST_GONE
    assert not any(key.startswith("team/") for key in target_series._series)


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
    """Return no credentials."""
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

        for _ in informer.measure():
            pass

        assert sample("vnode_informer_objects", api_server="silent", resource="pods") == 2
        silence = sample("vnode_informer_silence_seconds", api_server="silent", resource="pods")
        assert silence is not None
        assert silence >= 0
        for task in tasks:
            task.cancel()

    for _ in informer.measure():
        pass

    assert sample("vnode_informer_objects", api_server="silent", resource="pods") is None
    assert sample("vnode_informer_silence_seconds", api_server="silent", resource="pods") is None


def test_results_that_alerts_wait_for_are_there_before_the_first_of_them():
    """In a new process, since a counter stays once something was counted."""
    code = "from vnode.telemetry import metrics as m; print(m.generate_latest(m.REGISTRY).decode())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for result in ("bound", "unschedulable", "error"):
        assert f'vnode_scheduling_attempts_total{{result="{result}"}} 0.0' in done.stdout
