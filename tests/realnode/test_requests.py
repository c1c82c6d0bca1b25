"""What pods cost at the API servers on a real kubelet, which says more of each than kwok does."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack

import pytest

from tests import kit
from tests.bench import accounts
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster, pod
from vnode.api import keys, kinds

_PODS = 20
_CHANGES = 10
# Requests a pod: two more than the benchmark's aim, for a step that is told on a busy machine.
_MOST = 24.0
_NOT_COUNTED = ("leases", "clustersummaries", accounts.DRY_RUN.strip())


@pytest.fixture
async def clients(source: NodeCluster, target: NodeCluster):
    """Yield a client of each cluster, once nobody writes about pods of earlier tests."""
    async with AsyncExitStack() as stack:
        found = {
            each.name: await stack.enter_async_context(each.fleet.client(each.name))
            for each in (source, target)
        }
        await accounts.requests_when_quiet(found)
        yield found


async def counted(clients, before: accounts.Requests) -> dict[str, Counter[str]]:
    """Return the requests since `before`, once nobody writes about pods any more."""
    after = await accounts.requests_when_quiet(clients)
    return {name: after[name] - before[name] for name in clients}


def change(source: NodeCluster, target: NodeCluster, delegate: str, value: str) -> None:
    """Label the proxy, and wait until its delegate has the label, too."""
    source.ask("label", "pod", "unchanged", "--overwrite", f"number={value}")
    label = f"{keys.PREFIX}number".replace(".", "\\.")
    target.until(delegate, f".metadata.labels.{label}", value)


async def test_what_changes_no_status_writes_none(
    source: NodeCluster, target: NodeCluster, clients
):
    source.start("unchanged", "sleep 1000")
    delegate = target.delegate_of(source.get("pod", "unchanged"))
    change(source, target, delegate, "first")  # the kubelet then completes the status
    before = await accounts.requests_when_quiet(clients)
    for number in range(_CHANGES):
        change(source, target, delegate, f"n{number}")

    found = await counted(clients, before)
    assert found[TARGET]["PATCH podchaperons"] > 0  # the changes were sent, and came back
    assert found[SOURCE]["PATCH pods/status"] == 0
    assert found[TARGET]["PATCH podchaperons/status"] == 0
    source.remove("unchanged")


async def test_pods_that_start_at_once_stay_within_their_number_of_requests(clients):
    names = [f"counted-{number}" for number in range(_PODS)]
    before = await accounts.requests_when_quiet(clients)
    for name in names:
        made = pod(name, "sleep 1000", automountServiceAccountToken=False)
        made["metadata"]["labels"] = {"counted": ""}
        await clients[SOURCE].create(kinds.PODS, made, "default")

    await kit.until(
        clients[SOURCE],
        kinds.PODS,
        lambda pods: [*map(kit.phase, pods.values())] == ["Running"] * _PODS,
        namespace="default",
        label_selector="counted",
    )
    found = await counted(clients, before)
    await clients[SOURCE].request(
        "DELETE", kinds.PODS.path("default"), query={"labelSelector": "counted"}
    )

    source, target = found[SOURCE], found[TARGET]
    assert source["POST pods/binding"] == target["POST pods/binding"] == _PODS
    assert target["POST podchaperons"] == target["POST pods"] == _PODS
    # Reserved, allowed: on a stream, but for those that came before it was open.
    assert target["PATCH podchaperons"] <= _PODS / 2
    # Each report is of something that the kubelet has written, and each is taken over once.
    assert source["PATCH pods/status"] <= target["PATCH podchaperons/status"]
    assert target["PATCH podchaperons/status"] <= target["PATCH pods/status"]
    total = sum(
        number
        for each in found.values()
        for what, number in each.items()
        if not what.endswith(_NOT_COUNTED)
    )
    assert total / _PODS <= _MOST, found
