"""The agents of two clusters send one trace of a pod's way to a collector, by OTLP."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests import kit
from tests.e2e.gateways import serving
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.kube.client import Client

TOKEN: Final = "Bearer correct-horse"
SECRET: Final = "battery-staple"
TRACEPARENT: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Collector:
    """Keeps spans, with the name of the cluster whose agent has sent them."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Any]] = []
        self.bodies: list[bytes] = []
        self._changed = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        """Answer a request with spans."""
        if request.path != "/v1/traces" or request.headers.get("authorization") != TOKEN:
            return web.Response(status=401)

        body = await request.read()  # unzipped, as a server of HTTP does
        body = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
        async with self._changed:
            self.bodies.append(body)
            for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = {a.key: a.value.string_value for a in sent.resource.attributes}
                assert resource["service.name"] == "vnode"
                assert resource["k8s.cluster.uid"]
                cluster = resource["k8s.cluster.name"]
                self.spans += [(cluster, span) for each in sent.scope_spans for span in each.spans]

            self._changed.notify_all()

        return web.Response()

    async def until_sent(self, *names: str) -> dict[str, tuple[str, Any]]:
        """Return spans by their names, once there is one of each of these."""

        def found() -> dict[str, tuple[str, Any]]:
            return {span.name: (cluster, span) for cluster, span in self.spans}

        try:
            async with self._changed, asyncio.timeout(kit.PATIENCE):
                await self._changed.wait_for(lambda: set(names) <= found().keys())
        except TimeoutError:
            raise AssertionError(f"only {sorted(found())} came") from None

        return found()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with the agents' configuration, which says nothing yet."""
    file = tmp_path_factory.mktemp("configured") / "agent.yaml"
    write(file)
    return file


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, config: Path) -> Iterator[Fleet]:
    """Yield two clusters, of which c1 sends pods to c2."""
    words = ("c1", "c2", "--agents", f"--agent-arg=--config={config}")
    with started(tmp_path_factory, *words, "--connect", "c1:c2") as fleet:
        yield fleet


@pytest.fixture(autouse=True)
async def _clean() -> None:
    """Leave all as it is: nobody has the fleet afterwards."""


@pytest.fixture
async def collector(fleet: Fleet, config: Path) -> AsyncIterator[Collector]:
    """Yield a collector to which the agents of both clusters send."""
    made, headers = Collector(), config.with_name("headers")
    async with serving(fleet, made.take) as address:
        await asyncio.to_thread(headers.write_text, f"Authorization: {TOKEN}\n")
        await asyncio.to_thread(
            write, config, tracing={"endpoint": address, "headersFile": str(headers)}
        )
        for cluster in ("c1", "c2"):
            for verb in ("stop", "start"):
                await asyncio.to_thread(fleet.run, verb, cluster, "agent")

        yield made


def write(file: Path, **settings: object) -> None:
    """Write the agents' configuration."""
    head = {"apiVersion": "vnode.dev/v1alpha1", "kind": "AgentConfiguration"}
    file.write_text(yaml.safe_dump({**head, **settings}))


async def test_one_pods_spans_of_both_clusters_are_one_trace(
    fleet: Fleet, source: Client, collector: Collector
) -> None:
    pod = kit.pod("traced", annotations={keys.ELECT: "", "traceparent": TRACEPARENT})
    pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
    await source.create(kinds.PODS, pod, "default")
    uid = objects.uid(await kit.until_running(source, "traced"))
    await source.delete(kinds.PODS, "traced", "default")

    of_source = ("pod", "schedule", "candidate", "bind", "start", "run", "end")
    steps = ("create delegate", "reserve", "await source", "bind delegate", "start containers")
    of_target = ("delegate", *steps, "end delegate")
    found = await collector.until_sent(*of_source, *of_target)

    assert {found[name][0] for name in of_source} == {"c1"}
    assert {found[name][0] for name in of_target} == {"c2"}
    spans = {name: span for name, (_, span) in found.items()}
    assert {span.trace_id.hex() for span in spans.values()} == {uid.replace("-", "")}

    names = {span.span_id: name for name, span in spans.items()}
    parents = {name: names.get(span.parent_span_id, "") for name, span in spans.items()}
    assert [name for name, parent in parents.items() if not parent] == ["pod"]
    assert spans["pod"].links[0].trace_id.hex() == TRACEPARENT.split("-")[1]
    assert {parents[name] for name in of_source[1:]} == {"pod"}
    assert parents["delegate"] == "candidate"
    assert {parents[name] for name in (*steps, "end delegate")} == {"delegate"}

    def ends_in_order(*ordered: str) -> bool:
        ends = [spans[name].end_time_unix_nano for name in ordered]
        return ends == sorted(ends)

    assert all(s.start_time_unix_nano <= s.end_time_unix_nano for s in spans.values())
    assert ends_in_order("schedule", "bind", "candidate", "start", "run", "end")
    assert ends_in_order(*steps, "delegate", "end delegate")
    assert not any(SECRET.encode() in body for body in collector.bodies)
