"""A target may send thousands of objects of any form: others run, and logs stay short."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tests import background
from tests.apiserver.server import APIServer
from tests.computing import BusyClock
from vnode.api import kinds, objects
from vnode.kube.informer import Informer
from vnode.kube.object_filter import ObjectFilter
from vnode.telemetry import metrics

MANY = 2000


def malformed() -> float:
    """Return how many objects of the cluster could not be read."""
    labels = {"api_server": "odd", "resource": "pods"}
    name = "vnode_informer_malformed_objects_total"
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


async def test_malformed_objects_are_all_counted_and_once_logged(caplog, clock) -> None:
    client = APIServer("odd", clock).client()
    judged = ObjectFilter(client, kinds.PODS, lambda obj: "uid" in obj)
    before = malformed()
    for _ in range(2):
        judged.begin()
        good = {"uid": "1"}
        assert [judged.keep(each) for each in [{}] * MANY + [good]] == [None] * MANY + [good]

    assert malformed() - before == 2 * MANY
    assert caplog.messages == ["odd sent one of pods that cannot be read"] * 2


@pytest.mark.looptime
async def test_others_run_while_a_long_list_is_judged_and_stored(clock) -> None:
    server = APIServer("c1", clock)
    client = server.client()
    for number in range(MANY):
        metadata = {"name": f"m{number}", "namespace": "default"}
        await client.create(kinds.CONFIG_MAPS, {"metadata": metadata})

    judged: list[str] = []
    stored: list[str] = []

    def accept(obj: objects.Object) -> bool:
        judged.append(objects.key(obj))
        return True

    informer = Informer(client, kinds.CONFIG_MAPS, accept=accept, clock=BusyClock())
    informer.subscribe(lambda _old, new: stored.append(objects.key(new or {})))
    seen = set()
    async with background.running(informer.run()):
        while not informer.synced.is_set():
            seen.add((len(judged), len(stored)))
            await asyncio.sleep(0)

    assert len(informer.store) == len(stored) == MANY
    steps = sorted(number for number, count in seen if count == 0)
    assert max(after - before for before, after in pairwise(steps)) <= 200
    assert sum(0 < count < MANY for _, count in seen) > 100
