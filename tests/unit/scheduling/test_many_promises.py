"""A target that reports while thousands of pods are on their way there holds nobody up."""

from __future__ import annotations

import asyncio

import pytest

from tests import computing
from tests.unit.scheduling.builders import cache_of, pod
from tests.unit.scheduling.gpu_targets import GPU, MODEL
from vnode.api.clock import SystemClock
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.scheduling import promises
from vnode.scheduling.cache import Cache
from vnode.scheduling.node_rows import NodeRows

NODE = {"cpu": 64_000, "pods": 110, GPU: 8}
FREE = {name: 5_000 * amount for name, amount in NODE.items()}


def report(cache: Cache) -> None:
    row = RowOfNodes(5_000, NODE, NODE)
    rows = Rows((MODEL,), frozenset(NODE), (AlikeNodes({MODEL: "A100"}, (), (row,)),), 5_000, True)
    cache.update_free("a", FREE, NODE, NodeRows([NODE] * 16, is_complete=False), rows)


def promised(pods: int) -> Cache:
    cache = cache_of("a")
    report(cache)
    container = {"name": "c", "resources": {"requests": {"cpu": "1", GPU: "1"}}}
    for number in range(pods):
        cache.assume(pod(f"p{number}", containers=[container]), "a", now=0)

    return cache


async def test_thousands_of_promises_are_counted_on_what_is_reported_in_slices() -> None:
    """Three thousand took 250 ms in one step, each second."""
    cache = promised(2_000)
    with computing.steps() as took:
        loop = asyncio.get_running_loop()
        loop.call_soon(report, cache)
        await asyncio.sleep(0)
        assert not cache.promising.is_over
        cache.forget("p0", "a")
        cache.forget("p1999", "a")
        await asyncio.create_task(cache.promising.over(SystemClock()))

    assert max(took) < 0.05
    [info] = cache.snapshot().nodes
    assert info.rows is not None
    left = info.rows.histogram(GPU)["A100"]
    assert sum(gpus * nodes for gpus, nodes in left.items()) == FREE[GPU] - 1_998


@pytest.mark.parametrize("times", [1, 2])
def test_who_reads_after_a_report_reads_all_promises(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = promised(promises.FEW + 1)
    for _ in range(times):
        report(late)

    assert not late.promising.is_over
    [found] = late.snapshot().nodes
    monkeypatch.setattr(promises, "FEW", promises.FEW + 1)
    at_once = promised(promises.FEW)
    report(at_once)
    assert at_once.promising.is_over
    [expected] = at_once.snapshot().nodes
    assert (found.free, found.largest, found.rows) == (
        expected.free,
        expected.largest,
        expected.rows,
    )
