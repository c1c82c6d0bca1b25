"""The setting `tracing`: what is refused, with which cure, and what a collector gets."""

from __future__ import annotations

import gzip
import importlib.util
import logging
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from vnode.agent import config
from vnode.api.errors import ConfigError
from vnode.telemetry import otlp, spans, tracing
from vnode.telemetry.spans import Span, SpanEvent, SpanLink
from vnode.telemetry.tracing import TracingConfig

UID = "3f0e8a4c-6f0b-4d8e-9c1f-0a1b2c3d4e5f"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("endpoint: collector:4318", "tracing.endpoint"),
        ("endpoint: 'grpc://collector:4317'", "not its port 4317"),
        ("endpoint: 'http://collector:port'", "tracing.endpoint"),
        ("endpoint: 'http://user:secret@collector:4318'", "tracing.headersFile"),
        ("endpoint: 'http://collector:4318', samplingRatio: 1.5", "from 0 to 1"),
        ("samplingRatio: 0.5", "no endpoint"),
        ("endpoint: 'http://collector:4318', sampling: 1", "sampling"),
    ],
)
def test_what_cannot_work_is_refused_with_a_cure(fields: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(
        "apiVersion: vnode.dev/v1alpha1\nkind: AgentConfiguration\ntracing: {" + fields + "}\n"
    )
    with pytest.raises(ConfigError, match=words) as raised:
        config.load(file)

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://c:4318", "http://c:4318/v1/traces"),
        ("http://c:4318/", "http://c:4318/v1/traces"),
        ("https://c/otlp/v1/traces", "https://c/otlp/v1/traces"),
    ],
)
def test_an_endpoint_without_a_path_gets_the_usual_one(endpoint: str, url: str) -> None:
    assert TracingConfig(endpoint=endpoint).url == url


def test_without_a_collector_nothing_is_opened_or_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert tracing.opened(TracingConfig()) is None
    assert tracing.opened(TracingConfig(endpoint="http://c:4318", sampling_ratio=0)) is None


def test_an_extra_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"pip install 'vnode-kubernetes\[tracing\]'"):
        tracing.opened(TracingConfig(endpoint="http://c:4318"))


@pytest.mark.parametrize(
    "text", ["- a", "a b: c", "a: [1]", "a: {b: c}", "token", 'a: "x\\r\\ny"', "{"]
)
def test_a_file_that_has_no_headers_is_refused_and_not_quoted(text: str, tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text(text)
    with pytest.raises(ConfigError, match="NAME: VALUE") as raised:
        tracing.read_headers(str(file))

    assert "token" not in str(raised.value)


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="headersFile: cannot read"):
        tracing.read_headers(str(tmp_path / "none"))

    with pytest.raises(ConfigError, match="caFile: there is no file"):
        tracing.opened(TracingConfig(endpoint="https://c:4318", ca_file=str(tmp_path / "none")))


class _Collector(HTTPServer):
    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.status = status
        self.headers = Message()
        self.bodies: list[bytes] = []


class _Taking(BaseHTTPRequestHandler):
    server: _Collector

    def do_POST(self) -> None:
        self.server.headers = self.headers
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Log nothing."""


@pytest.fixture
def collector() -> Iterator[_Collector]:
    with _Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_collector_gets_spans_with_all_that_they_have(
    collector: _Collector, tmp_path: Path
) -> None:
    file = tmp_path / "headers"
    file.write_text("Authorization: Bearer abc\nX-Scope-OrgID: 7\n")
    url = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    export = otlp.exporter(url, tracing.read_headers(str(file)))
    events = (SpanEvent("reserved", 1.5, {"k8s.node.name": "c2"}),)
    trace, parent = spans.trace_id(UID), spans.root_id(UID)
    links = (SpanLink(5, 6),)
    span = Span(
        "x", trace, 9, parent, 1.0, 2.25, {"a": ("b",)}, events, links, "no", is_remote=True
    )

    assert export({"service.name": "vnode"}, [span]) == ""

    assert collector.headers["Authorization"] == "Bearer abc"
    assert collector.headers["X-Scope-OrgID"] == "7"
    request = ExportTraceServiceRequest.FromString(gzip.decompress(collector.bodies[0]))
    (resource,) = request.resource_spans
    assert [(a.key, a.value.string_value) for a in resource.resource.attributes] == [
        ("service.name", "vnode")
    ]
    (got,) = resource.scope_spans[0].spans
    assert got.trace_id.hex() == UID.replace("-", "")
    assert int.from_bytes(got.parent_span_id, "big") == parent
    assert (got.start_time_unix_nano, got.end_time_unix_nano) == (10**9, 2_250_000_000)
    assert (got.events[0].name, len(got.links), got.status.message) == ("reserved", 1, "no")


def test_a_refusal_is_returned_and_the_library_logs_nothing(
    collector: _Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 403
    export = otlp.exporter(f"http://127.0.0.1:{collector.server_port}/v1/traces", {})
    with caplog.at_level(logging.DEBUG, "opentelemetry"):
        failure = export({}, [spans.child(UID, "x", 1.0, 2.0)])

    assert "403" in failure
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]
