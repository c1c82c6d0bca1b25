"""What a target calls a kubelet's metrics costs little, whatever it is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests import computing
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from vnode.api.objects import Object, Objects
from vnode.kube import answer_limits
from vnode.kubelet.usage import kubelets, metrics_api
from vnode.kubelet.usage.findings import Findings
from vnode.kubelet.usage.reader import TargetReader

POD = ("default", "web")
NODE = "node_cpu_usage_seconds_total 1 1700000000000\nnode_memory_working_set_bytes 1\n"


async def test_a_line_of_thousands_of_labels_is_not_parsed() -> None:
    """It took minutes, in which the agent did nothing else."""
    labels = ",".join(f'l{number}="x"' for number in range(200_000))
    found = Findings()
    line = f'container_cpu_usage_seconds_total{{pod="web",{labels}}} 1\n'
    await asyncio.wait_for(kubelets.parse(line + NODE, "n", 1.0, {POD}, found), 20)
    assert list(found.nodes or ()) == ["n"]
    assert not found.problems


@pytest.mark.parametrize(
    ("line", "steps"),
    [("node_cpu_usage_seconds_total 1\n", 500), ("pod_cpu_usage_seconds_total\n", 500), ("\n", 30)],
    ids=["samples", "no samples", "empty"],
)
async def test_the_event_loop_runs_while_metrics_are_read_and_they_end(
    line: str, steps: int
) -> None:
    text = line * (answer_limits.KUBELET_METRICS // len(line))
    reading = asyncio.create_task(kubelets.parse(text, "n", 1.0, {POD}, Findings()))
    pauses = 0
    while not reading.done():
        pauses += 1
        await asyncio.sleep(0)

    assert steps <= pauses < 1000


def measured(name: str, containers: int) -> Object:
    usage = {"cpu": "1", "memory": "1Mi"}
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "1s",
        "usage": usage,
        "containers": [{"name": f"c{number}", "usage": usage} for number in range(containers)],
    }


@pytest.mark.looptime
async def test_the_event_loop_runs_while_a_metrics_api_tells_very_much(clock) -> None:
    """An answer of a megabyte of nodes, or of containers of one pod, took the loop for seconds."""
    target: Any = SimpleNamespace()
    found, clock = Findings(), WorkingClock(clock)
    many = [measured(f"n{number}", 0) for number in range(30_000)]
    with computing.steps() as steps:
        target.list = lambda *_kind, **_options: answered(many)
        await asyncio.create_task(metrics_api.read_nodes(target, found, clock))
        target.list = lambda *_kind, **_options: answered([measured("web", 20_000)])
        await asyncio.create_task(metrics_api.read_pods(target, None, "", found, clock))

    assert max(steps) < 0.05
    assert len(found.nodes or ()) == 10_000
    assert len(found.pods["ns", "web"].containers) == 20_000


async def answered(items: Objects) -> Objects:
    return items


async def test_a_target_that_names_very_many_nodes_gets_few_tasks(clock) -> None:
    nodes = [{"metadata": {"name": f"n{number}"}} for number in range(5000)]
    before, most = len(asyncio.all_tasks()), 0

    async def text(*_path: str, **_limit: int) -> str:
        nonlocal most
        most = max(most, len(asyncio.all_tasks()) - before)
        return NODE

    target: Any = SimpleNamespace(list=lambda *_kind, **_options: answered(nodes), text=text)
    found = Findings()
    await kubelets.read(target, {POD}, lambda: 1.0, found)
    assert most == 8
    assert len(found.nodes or ()) == 5000


@pytest.mark.looptime
async def test_a_target_that_does_not_answer_costs_seven_seconds(clock) -> None:
    server = APIServer("c2", clock)
    server.freeze()
    found = await TargetReader(clock).read(server.client(), {POD}, "", everywhere=True)
    assert found.problems == ["not all answered within 7 s"]
    assert asyncio.get_running_loop().time() == pytest.approx(7, abs=0.1)
