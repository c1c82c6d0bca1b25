"""What the metrics API and kubelets say, and what is left out of it."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec
import pytest

from tests.apiserver.requests import APIRequest
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import Denied, NotFound, ServerError, VnodeError
from vnode.api.kinds import Kind
from vnode.kubelet.usage import kubelets, metrics_api
from vnode.kubelet.usage.findings import Findings
from vnode.kubelet.usage.points import Rate, Total
from vnode.kubelet.usage.reader import TargetReader

AT = "2026-01-01T00:00:10Z"
AT_UNIX = 1767225610.0
POD = ("default", "web-x")

TEXT = """\
# HELP node_cpu_usage_seconds_total words
node_cpu_usage_seconds_total 100.5 1767225610000
node_memory_working_set_bytes 2.5e+09 1767225610000
container_cpu_usage_seconds_total{container="main",POD} 3.25 1767225609500
container_memory_working_set_bytes{container="main",POD} 1048576 1767225609500
container_cpu_usage_seconds_total{container="half",POD} 3.25 1767225609500
pod_cpu_usage_seconds_total{namespace="default",pod="web-x"} 4
pod_memory_working_set_bytes{namespace="default",pod="web-x"} 2097152
pod_cpu_usage_seconds_total{namespace="other",pod="stranger"} 4
pod_memory_working_set_bytes{namespace="other",pod="stranger"} 1
some_other_family{x="y"} 1
""".replace("POD", 'namespace="default",pod="web-x"')


DENIED = Denied(403, "Forbidden", "no")


def metrics(name: str, namespace: str = "default", **changes: Any) -> dict[str, Any]:
    usage = {"cpu": "250m", "memory": "64Mi"}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"a": "b"}},
        "timestamp": AT,
        "window": "10.5s",
        "containers": [{"name": "main", "usage": usage}],
        **changes,
    }


class Target:
    """A target with the metrics API, which tells us of pods in all namespaces, and of no node."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("c2", clock)
        self.reader = TargetReader(clock)
        self.refuse_kubelets()
        self.refuse(kinds.NODE_METRICS)

    def measure(self, *pods: dict[str, Any]) -> None:
        """Have the metrics API tell of these pods."""
        for each in pods:
            self.server.add(kinds.POD_METRICS, each)

    def refuse(
        self, kind: Kind, error: VnodeError = DENIED, *, where: Container[str] | None = None
    ) -> None:
        """Refuse lists of all namespaces (""), or of those alone."""
        self.server.fail(
            error,
            verb="list",
            kind=kind,
            when=lambda request: where is None or request.namespace in where,
            times=None,
        )

    def refuse_kubelets(self, *, refused: bool = True) -> None:
        """Have reviews say that we may not read kubelets, or that we may."""
        self.server.refuse("get", "nodes/proxy", refused=refused)

    def answer_lists(self, kind: Kind, *items: Any) -> None:
        """Answer lists of a kind with these items, whatever they are."""
        before = self.server.spoil

        def spoil(request: APIRequest, answer: Any) -> Any:
            if (request.verb, request.kind) == ("list", kind):
                return {**answer, "items": items}

            return before(request, answer)

        self.server.spoil = spoil

    @property
    def lists(self) -> list[tuple[Kind | None, str]]:
        return [(each.kind, each.namespace) for each in self.server.received("list")]

    async def read(self, *, everywhere: bool, wanted=(POD,)) -> Findings:
        return await self.reader.read(self.server.client(), wanted, "a=b", everywhere=everywhere)


@pytest.fixture
async def target(clock) -> Target:
    return Target(clock)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("15s", 15.0), ("1m10.5s", 70.5), ("250ms", 0.25), ("1h0m0s", 3600.0), ("2µs", 2e-6)],
)
def test_a_duration_is_read_as_go_writes_it(text: str, expected: float):
    assert metrics_api.seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["10", "x", "1s x", "-1s"])
def test_what_is_no_duration_is_an_error(text: str):
    with pytest.raises(ValueError, match="is not a duration"):
        metrics_api.seconds(text)


def test_a_usage_has_the_time_and_window_of_its_object():
    item = msgspec.convert(metrics("web-x"), metrics_api.Metrics)
    rate = metrics_api.rate(item, item.containers[0].usage)
    assert rate == Rate(AT_UNIX, 10.5, 0.25, 64 * 2**20)


@pytest.mark.parametrize(
    "odd",
    [
        "not an object",
        {},
        metrics("a", timestamp=5),
        metrics("a", timestamp="9999-12-31T23:59:59Z"),
        metrics("a", window="-1s"),
        metrics("a", containers=[{"name": "main", "usage": {"cpu": "much", "memory": "1"}}]),
        metrics("a", containers=[{"name": "main", "usage": {"cpu": "1e60", "memory": "1"}}]),
        metrics("a", containers=[{"name": "main", "usage": {"cpu": "1", "memory": "1e60"}}]),
        metrics("a", containers=[{"name": "main", "usage": {"cpu": "-1", "memory": "1"}}]),
    ],
)
async def test_what_no_machine_uses_is_left_out(target, odd: Any):
    target.answer_lists(kinds.POD_METRICS, odd, metrics("web-x"))
    target.answer_lists(kinds.NODE_METRICS, odd, metrics("web-x"))

    assert set((await target.read(everywhere=False)).pods) == {POD}


@pytest.mark.parametrize("odd", ["+Inf", "NaN", "-1", "1e300"])
async def test_what_no_kubelet_counts_is_left_out(odd: str):
    found = Findings()
    await kubelets.parse(TEXT.replace(" 2.5e+09 ", f" {odd} "), "n", 1.0, {POD}, found)

    assert not found.nodes
    assert set(found.pods) == {POD}


async def test_one_bad_pod_does_not_spoil_the_others(target):
    bad = metrics("bad", timestamp="yesterday")
    target.measure(bad, metrics("web-x"), metrics("n", containers=[]))

    found = await target.read(everywhere=False)

    assert set(found.pods) == {POD}
    assert any("yesterday" in problem for problem in found.problems)


async def test_a_source_of_one_namespace_reads_pods_there_and_no_nodes(target):
    target.measure(metrics("web-x"))

    found = await target.read(everywhere=False)

    assert found.pods[POD].containers["main"].cores == 0.25
    assert found.nodes is None
    assert found.problems == []


async def test_without_a_right_to_all_pods_each_namespace_is_asked(target):
    target.measure(metrics("web-x"), metrics("other", namespace="unasked"))
    target.refuse(kinds.POD_METRICS, where=[""])

    first = await target.read(everywhere=True)
    target.server.requests.clear()
    second = await target.read(everywhere=True)

    assert set(first.pods) == set(second.pods) == {POD}
    assert target.lists == [(kinds.POD_METRICS, "default")]  # what was refused is not asked again


async def test_one_namespace_that_is_refused_does_not_spoil_the_others(target):
    target.measure(metrics("web-x"))
    target.refuse(kinds.POD_METRICS, where=["closed"])

    found = await target.read(everywhere=False, wanted=[POD, ("closed", "y")])

    assert set(found.pods) == {POD}
    assert any("closed" in problem for problem in found.problems)


async def test_a_target_without_a_metrics_api_is_a_problem_and_no_error(target):
    target.refuse(kinds.POD_METRICS, NotFound(404, "NotFound", "no such API"))

    found = await target.read(everywhere=True)

    assert (found.pods, found.nodes) == ({}, None)
    assert any("no such API" in problem for problem in found.problems)


async def test_all_nodes_are_read_where_that_is_allowed(clock):
    target = Target(clock)
    target.server.faults.clear()
    node = {"metadata": {"name": "n"}, "timestamp": AT, "window": "10s"}
    usage = {"cpu": "2", "memory": "1Gi"}
    target.answer_lists(kinds.NODE_METRICS, {**node, "usage": usage}, {"metadata": {}})

    found = await target.read(everywhere=True, wanted=())

    assert found.nodes == {"n": Rate(AT_UNIX, 10.0, 2.0, 2**30)}
    assert len(found.problems) == 1


async def test_a_kubelets_text_is_read_with_its_times():
    found = Findings()
    await kubelets.parse(TEXT, "n", 1.0, {POD}, found)

    assert found.nodes == {"n": Total(AT_UNIX, 100.5, 2_500_000_000)}
    assert set(found.pods) == {POD}
    assert found.pods[POD].containers == {"main": Total(AT_UNIX - 0.5, 3.25, 1048576)}
    assert found.pods[POD].whole == Total(1.0, 4.0, 2097152)  # a line without a time is of now


async def test_a_line_that_cannot_be_read_is_left_out():
    found = Findings()
    await kubelets.parse("node_cpu_usage_seconds_total{ oh no\n" + TEXT, "n", 1.0, {POD}, found)

    assert POD in found.pods
    assert any("a line cannot be read" in problem for problem in found.problems)


async def test_kubelets_are_asked_where_that_is_allowed_and_one_may_fail(target):
    annotation = {"metrics.k8s.io/resource-metrics-path": "/metrics/nodes/good/metrics/resource"}
    odd = {"metrics.k8s.io/resource-metrics-path": "/../../secrets"}
    target.refuse_kubelets(refused=False)
    target.server.add(kinds.NODES, {"metadata": {"name": "good", "annotations": annotation}})
    target.server.add(kinds.NODES, {"metadata": {"name": "bad", "annotations": odd}})
    target.server.pages = {
        "/api/v1/nodes/good/proxy/metrics/nodes/good/metrics/resource": TEXT,
        "/api/v1/nodes/bad/proxy/metrics/resource": ServerError(503, "", "gone fishing"),
    }

    found = await target.read(everywhere=False)

    assert set(found.pods) == {POD}
    assert set(found.nodes or {}) == {"good"}
    assert any("gone fishing" in problem for problem in found.problems)
    assert target.lists == [(kinds.NODES, "")]


async def test_the_metrics_api_stands_in_for_kubelets_that_do_not_answer(target):
    target.refuse_kubelets(refused=False)
    target.server.add(kinds.NODES, {"metadata": {"name": "bad"}})
    target.measure(metrics("web-x"))
    target.server.pages = {"/api/v1/nodes/bad/proxy/metrics/resource": ServerError(503, "", "gone")}

    found = await target.read(everywhere=False)

    assert found.pods[POD].containers["main"].cores == 0.25
