"""What a target calls a kubelet's metrics costs little, whatever it is."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from vnode.kube import answer_limits
from vnode.kubelet.usage import kubelets
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


@pytest.mark.looptime
async def test_a_target_that_does_not_answer_costs_seven_seconds(clock) -> None:
    server = APIServer("c2", clock)
    server.freeze()
    found = await TargetReader(clock).read(server.client(), {POD}, "", everywhere=True)
    assert found.problems == ["not all answered within 7 s"]
    assert asyncio.get_running_loop().time() == pytest.approx(7, abs=0.1)
