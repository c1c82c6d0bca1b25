"""From findings to what is told: names of proxy pods, counters that go on, nothing invented."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests import computing
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from tests.unit.scheduling import costs
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.usage import collector, exposition, summary
from vnode.kubelet.usage.collector import Collector, UsageReport
from vnode.kubelet.usage.findings import Findings, PodReading
from vnode.kubelet.usage.points import Rate, Total
from vnode.runtime.links import Links

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z
KEY = ("default", names.chaperon("web", "u1"))
US = Identity("c1", "us")


def pod(
    uid: str = "u1", *, started: str = "2026-01-01T00:00:00Z", name: str = "web"
) -> dict[str, Any]:
    running = {"name": "main", "state": {"running": {"startedAt": started}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"nodeName": "v", "containers": [{"name": "main"}, {"name": "off"}]},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [running, {"name": "off", "state": {"terminated": {}}}],
        },
    }


def rates(after: float, cores: float = 0.5) -> Findings:
    reading = Rate(START + after, 10.0, cores, 1000)
    return Findings(pods={KEY: PodReading({"main": reading, "off": reading, "no": reading})})


def built(
    proxies: dict[Any, Any], findings: Findings, before: dict[Any, Any]
) -> tuple[UsageReport, dict[Any, Any]]:
    """Return the report, and the points from which the next one goes on."""
    known = dict(before)
    pods = list(collector.pod_usages(proxies, findings, known))
    return collector.build(pods, findings, known), known


def test_a_delegates_usage_is_told_under_the_name_of_its_proxy():
    report, _ = built({KEY: pod()}, rates(20), {})

    assert [one.pod["metadata"]["name"] for one in report.pods] == ["web"]
    assert [each.name for each in report.pods[0].containers] == ["main"]  # those that run


def test_a_pod_without_values_is_left_out():
    report, _ = built({KEY: pod(), ("default", "y"): pod("u2")}, rates(20), {})
    assert len(report.pods) == 1


def test_a_reading_of_a_former_namesake_is_left_out():
    late = pod(started="2026-01-01T00:01:00Z")
    report, _ = built({KEY: late}, rates(20), {})
    assert report.pods == ()


def test_a_container_that_was_started_anew_counts_from_its_start():
    _, known = built({KEY: pod()}, rates(1000), {})
    again = pod(started="2026-01-01T00:20:00Z")
    report, _ = built({KEY: again}, rates(1210), known)

    assert report.pods[0].containers[0].point.cpu == pytest.approx(5.0, abs=0.001)


def test_a_counter_goes_on_after_a_look_that_found_nothing():
    _, known = built({KEY: pod()}, rates(20), {})
    _, known = built({KEY: pod()}, Findings(), known)
    report, _ = built({KEY: pod()}, rates(40), known)

    assert report.pods[0].point.cpu == pytest.approx(5.0 + 10.0, abs=0.001)


def test_a_node_uses_what_all_nodes_of_its_target_use():
    found = rates(20)
    found.nodes = {"a": Rate(START, 10.0, 2.0, 10), "b": Rate(START + 1, 10.0, 3.0, 20)}
    report, _ = built({KEY: pod()}, found, {})

    assert report.whole_target
    assert report.node is not None
    assert (report.node.cores, report.node.memory) == (5.0, 30)


def test_a_node_that_joins_the_target_makes_no_jump():
    def look(after: float, **nodes: float) -> Findings:
        return Findings(nodes={k: Total(START + after, v, 1) for k, v in nodes.items()})

    _, known = built({}, look(0, a=1000.0), {})
    first, known = built({}, look(10, a=1010.0), known)
    second, known = built({}, look(20, a=1020.0, b=5e6), known)
    third, _ = built({}, look(30, a=1030.0, b=5e6 + 20), known)

    assert first.node is not None
    assert second.node is not None
    assert third.node is not None
    assert second.node.cpu - first.node.cpu == pytest.approx(10.0)
    assert third.node.cpu - second.node.cpu == pytest.approx(30.0)


def test_a_node_uses_what_its_pods_use_where_nodes_may_not_be_read():
    report, _ = built({KEY: pod()}, rates(20), {})

    assert not report.whole_target
    assert report.node is not None
    assert report.node.cores == 0.5


def test_of_a_node_without_values_nothing_is_told():
    report, _ = built({KEY: pod()}, Findings(nodes={}), {})
    assert report.node is None
    assert summary.render("v", None, report)["node"] == {"nodeName": "v", "startTime": None}


def test_the_text_has_kubelet_families_with_times_in_milliseconds():
    report, _ = built({KEY: pod()}, rates(20.25), {})
    text = exposition.resource(report).decode()

    where = 'container="main",namespace="default",pod="web"'
    stamp = f"{int((START + 20.25) * 1000)}"
    assert f"container_memory_working_set_bytes{{{where}}} 1000.0 {stamp}" in text
    assert f"container_start_time_seconds{{{where}}} 1767225600.0\n" in text
    names = {s.name for f in text_string_to_metric_families(text) for s in f.samples}
    assert names == {
        *(f"{t}_cpu_usage_seconds_total" for t in ("node", "pod", "container")),
        *(f"{t}_memory_working_set_bytes" for t in ("node", "pod", "container")),
        "container_start_time_seconds",
        "resource_scrape_error",
        "scrape_error",
    }


def test_the_text_says_what_went_wrong():
    text = exposition.resource(UsageReport(problems=("node a: gone\nfishing",))).decode()

    assert text.startswith("# node a: gone fishing\n")
    assert "\nresource_scrape_error 1.0\n" in text
    assert list(text_string_to_metric_families(text))


def test_the_summary_refers_to_the_proxy_pod():
    report, _ = built({KEY: pod()}, rates(20), {})
    shown = summary.render("v", None, report)

    assert shown["node"]["cpu"]["usageNanoCores"] == 500_000_000
    (one,) = shown["pods"]
    assert one["podRef"] == {"name": "web", "namespace": "default", "uid": "u1"}
    assert one["startTime"] == "2026-01-01T00:00:00Z"
    (container,) = one["containers"]
    assert container["memory"] == {"time": "2026-01-01T00:00:20Z", "workingSetBytes": 1000}
    assert container["cpu"]["usageNanoCores"] == 500_000_000


class Target:
    """A target with a metrics API, which takes half a second for each answer."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("c2", clock, latency=lambda: 0.25)
        self.server.refuse("get", "nodes/proxy")
        self._clock = clock
        self._link = links.link_to(self.server, TargetKey("default", "c2"), US, clock)

    @property
    def looks(self) -> int:
        return self.server.count("list", kinds.POD_METRICS)

    @asynccontextmanager
    async def collecting(self, *pods: dict[str, Any]) -> AsyncIterator[Collector]:
        """Collect for a node with these pods, of which the target runs the one with the UID u1."""
        labels = {keys.PARENT_CLUSTER_NAME: "c1", keys.PARENT_UID: "u1"}
        annotations = {
            keys.PARENT_NAME: "web",
            keys.PARENT_NAMESPACE: "default",
            keys.PARENT_CLUSTER_UID: US.uid,
            keys.TARGET: str(self._link.target),
        }
        metadata = {"name": KEY[1], "labels": labels, "annotations": annotations}
        self.server.add(kinds.POD_CHAPERONS, {"metadata": metadata})
        node, connected = self._link.node_name, Links()
        connected.add(self._link)

        async def nobody(*_names: str) -> None:
            return None

        async with links.connected(self._link):
            served = ServedNode(node, connected, nobody, lambda _node: list(pods))
            yield Collector(served, self._clock)


@pytest.fixture
async def target(clock: Clock) -> Target:
    return Target(clock)


@pytest.mark.looptime
async def test_many_scrapers_make_one_look(target: Target):
    async with target.collecting(pod(), pod("u2", name="lonely")) as collected:
        await asyncio.gather(*(collected.report() for _ in range(20)))
        [request] = target.server.received("list", kinds.POD_METRICS)
        assert request.query["labelSelector"] == f"{keys.PARENT_CLUSTER_NAME}=c1"

        await asyncio.sleep(collector.SHARED)
        await collected.report()
        assert target.looks == 2


@pytest.mark.looptime
@pytest.mark.parametrize(("ago", "looks"), [(1, 2), (collector.STARTING + 1, 1)])
async def test_a_container_without_a_value_is_looked_for_sooner_if_it_has_just_started(
    clock: Clock, target: Target, ago, looks
):
    started = objects.timestamp(clock.now() - timedelta(seconds=ago))
    async with target.collecting(pod(started=started)) as collected:
        for wait in (0.0, collector.SHARED_WHILE_STARTING / 2, collector.SHARED_WHILE_STARTING):
            await asyncio.sleep(wait)
            await collected.report()

    assert target.looks == looks


@pytest.mark.looptime
async def test_a_container_that_has_a_value_is_not_looked_for_sooner(clock: Clock, target: Target):
    usage = {"cpu": "1", "memory": "1Mi"}
    metadata = {"name": KEY[1], "labels": {keys.PARENT_CLUSTER_NAME: "c1"}}
    measured = {
        "metadata": metadata,
        "timestamp": objects.timestamp(clock.now()),
        "window": "1s",
        "containers": [{"name": "main", "usage": usage}],
    }
    target.server.add(kinds.POD_METRICS, measured)
    started = objects.timestamp(clock.now() - timedelta(seconds=5))
    async with target.collecting(pod(started=started)) as collected:
        assert (await collected.report()).pods
        await asyncio.sleep(collector.SHARED_WHILE_STARTING * 2)
        await collected.report()

    assert target.looks == 1


@pytest.mark.looptime
async def test_pods_of_very_many_containers_are_gone_through_in_steps(clock: Clock):
    entry = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    pods, found, containers = [], Findings(), [f"c{number}" for number in range(100)]
    for number in range(200):
        each = pod(f"u{number}", name=f"p{number}")
        each["spec"]["containers"] = [{"name": name} for name in containers]
        each["status"]["containerStatuses"] = [{"name": name, **entry} for name in containers]
        pods.append(each)
        for name in containers:
            found.container(("default", f"p{number}"), name, Rate(START + 20, 10.0, 0.5, 1000))

    async def read(*_of: Any, **_options: Any) -> Findings:
        return found

    link = SimpleNamespace(
        target=TargetKey("", "c2"),
        client=None,
        candidate=lambda key, _uid: {
            "metadata": {"namespace": "default", "name": objects.split_key(key)[1]}
        },
    )
    node = SimpleNamespace(name="v", link=link, pods=lambda: pods)
    collected = Collector(node, WorkingClock(clock))  # type: ignore[arg-type]
    collected._reader = SimpleNamespace(read=read)  # type: ignore[assignment]
    with computing.steps() as steps:
        report = await asyncio.create_task(collected.report())
        assert not await asyncio.create_task(collected._lacks(report))

    assert len(report.pods) == 200
    assert max(steps) < 0.03


def test_each_container_of_many_that_run_costs_the_same():
    def cost(count):
        state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        names = [{"name": f"c{number}"} for number in range(count)]
        entries = [{**each, "state": state} for each in names]
        pod = {"spec": {"containers": names}, "status": {"containerStatuses": entries}}
        proxies, reading = {("ns", "d"): pod}, PodReading()
        usages = collector.pod_usages(proxies, Findings(pods={("ns", "d"): reading}), {})
        return costs.bytecodes(lambda: list(usages))

    assert cost(400) < 5 * cost(100)
