"""What the audit log says, and what it does not tell."""

from __future__ import annotations

import ast
import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import vnode
from tests.apiserver.client import MemoryClient
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Conflict, NotFound
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.telemetry import audit, logs

PATCH = {"metadata": {"labels": {"a": "b"}}}
ALICES = audit.Subject("AuthTokenRequest", "default", "ci", "u1", author="alice")
WEB = audit.Subject("Pod", "default", "web-0", "u2")


class Kept(logging.Handler):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    """Return the lines of the audit log, as they come."""
    log, kept = logging.getLogger(audit.NAME), Kept()
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    yield kept.records
    log.removeHandler(kept)
    log.setLevel(audit.OFF)


@pytest.fixture
async def client(clock: Clock) -> MemoryClient:
    return APIServer("gpu", clock).client()


def named(name: str = "a") -> Object:
    return {"metadata": {"name": name, "namespace": "default"}}


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return a line as who reads the log has it."""
    decoded: dict[str, Any] = msgspec.json.decode(logs.JsonFormatter().format(record))
    return decoded


async def test_a_line_says_who_made_the_agent_do_what(
    client: MemoryClient, lines: list[logging.LogRecord]
) -> None:
    with audit.on_behalf_of(ALICES.because("it is due")):
        made = await client.create(kinds.SECRETS, {**named("token"), "data": {"token": "c2VjcmV0"}})

    (line,) = map(fields, lines)
    assert line["logger"] == "vnode.audit"
    assert line["msg"] == (
        "create secrets default/token in gpu for AuthTokenRequest default/ci by alice"
    )
    assert line["verb"] == "create"
    assert line["cluster"] == "gpu"
    assert line["object"] == {
        "resource": "secrets",
        "namespace": "default",
        "name": "token",
        "uid": objects.uid(made),
    }
    assert line["onBehalfOf"] == {
        "kind": "AuthTokenRequest",
        "namespace": "default",
        "name": "ci",
        "uid": "u1",
        "author": "alice",
        "reason": "it is due",
    }
    assert "c2VjcmV0" not in str(line)


Write = Callable[[MemoryClient], Awaitable[Any]]

WRITES: dict[str, Write] = {
    "create": lambda c: c.create(kinds.CONFIG_MAPS, named("b")),
    "patch": lambda c: c.patch(kinds.CONFIG_MAPS, "a", PATCH, "default"),
    "apply": lambda c: c.apply(kinds.CONFIG_MAPS, named("b")),
    "update": lambda c: c.replace(kinds.CONFIG_MAPS, named()),
    "delete": lambda c: c.delete(kinds.CONFIG_MAPS, "a", "default"),
}


@pytest.mark.parametrize("verb", WRITES)
async def test_each_verb_that_changes_something_is_told_once_it_was_accepted(
    client: MemoryClient, lines: list[logging.LogRecord], verb: str
) -> None:
    with audit.on_behalf_of(WEB):
        made = await client.create(kinds.CONFIG_MAPS, named())
        lines.clear()
        await WRITES[verb](client)
        (line,) = map(fields, lines)
        assert line["verb"] == verb
        assert line["object"]["resource"] == "configmaps"
        assert line["object"]["uid"]
        if verb in ("patch", "delete"):
            assert line["object"]["uid"] == objects.uid(made)

        lines.clear()
        with pytest.raises((NotFound, Conflict)):
            await client.delete(kinds.CONFIG_MAPS, "a", "default", uid="another")

        assert not lines


async def test_reads_heartbeats_events_reviews_and_statuses_are_not_told(
    client: MemoryClient, lines: list[logging.LogRecord]
) -> None:
    with audit.on_behalf_of(WEB):
        pod = await client.create(kinds.PODS, {**named(), "spec": {"containers": []}})
        lines.clear()
        await client.get(kinds.PODS, "a", "default")
        await client.list(kinds.PODS)
        await client.create(kinds.LEASES, named())
        await client.create(kinds.EVENTS, named())
        status = objects.status_patch(pod, {"phase": "Running"})
        await client.patch(kinds.PODS, "a", status, "default", subresource="status")

    for kind in (kinds.TOKEN_REVIEWS, kinds.SELF_SUBJECT_ACCESS_REVIEWS):
        audit.changed("create", kind, {}, cluster="local", namespace="", name="")

    assert not lines


async def test_books_that_the_agent_keeps_on_an_object_are_told_only_if_another_one_is_the_reason(
    client: MemoryClient, lines: list[logging.LogRecord]
) -> None:
    with audit.on_behalf_of(WEB):
        pod = await client.create(kinds.PODS, {**named(), "spec": {"containers": []}})

    lines.clear()
    books = {"metadata": {"annotations": {"vnode.dev/x": "1"}, "finalizers": []}}
    books["metadata"]["labels"] = {keys.HAS_FINALIZER: "true"}
    with audit.on_behalf_of(audit.of(kinds.PODS, pod)):
        await client.patch(kinds.PODS, "a", books, "default")
        assert not lines
        await client.patch(kinds.PODS, "a", PATCH, "default")
        assert len(lines) == 1

    with audit.on_behalf_of(WEB):
        await client.patch(kinds.PODS, "a", books, "default")
        assert len(lines) == 2


async def test_a_change_on_behalf_of_nobody_known_is_an_error_of_ours(
    client: MemoryClient, lines: list[logging.LogRecord]
) -> None:
    await client.create(kinds.CONFIG_MAPS, named())
    (line,) = lines
    assert line.levelname == "ERROR"
    assert fields(line)["onBehalfOf"] is None


async def test_a_task_works_for_whom_it_was_started(
    client: MemoryClient, lines: list[logging.LogRecord]
) -> None:
    with audit.on_behalf_of(WEB):
        task = asyncio.create_task(client.create(kinds.CONFIG_MAPS, named()))

    with audit.on_behalf_of(ALICES):
        await task

    assert fields(lines[0])["onBehalfOf"]["name"] == "web-0"


def test_a_stream_is_told_with_its_container_and_the_length_of_its_command(
    lines: list[logging.LogRecord],
) -> None:
    with audit.on_behalf_of(audit.Subject("User", name="alice")):
        audit.opened("exec", named("web-0"), cluster="gpu", container="main", length=12)
        audit.opened("portforward", named("web-0"), cluster="gpu")

    opened, forwarded = map(fields, lines)
    assert opened["verb"] == "open"
    assert opened["object"]["subresource"] == "exec"
    assert (opened["container"], opened["commandLength"]) == ("main", 12)
    assert opened["onBehalfOf"] == {"kind": "User", "name": "alice"}
    assert "container" not in forwarded


def test_subjects_name_the_cluster_that_sent_them_and_the_targets_kind() -> None:
    labels = {keys.PARENT_CLUSTER_NAME: "c1"}
    owner = {"controller": True, "uid": "u3"}
    pod = {"metadata": {**named("web-0-x")["metadata"], "labels": labels, "uid": "u4"}}
    pod["metadata"]["ownerReferences"] = [owner]
    sent = audit.of_delegate(pod)
    assert sent == audit.Subject("PodChaperon", "default", "web-0-x", "u3", "c1")
    assert str(sent) == "PodChaperon default/web-0-x of c1"
    sources = ("ClusterSource all", "Source default/c1")
    sent = audit.of_chaperon("default/web-0-x", pod, sources=sources)
    assert str(sent) == "PodChaperon default/web-0-x of c1 by ClusterSource all or " + sources[1]
    assert str(audit.of_target(TargetKey("", "gpu"))) == "ClusterTarget gpu"
    assert str(audit.of_target(TargetKey("default", "gpu"))) == "Target default/gpu"
    assert audit.of_target(None) == audit.AGENT
    reference = objects.reference(pod, "Pod", "v1")
    assert audit.of_reference(reference) == audit.Subject("Pod", "default", "web-0-x", "u4")


async def test_nothing_is_told_until_an_agent_opens_the_log(
    client: MemoryClient, caplog: pytest.LogCaptureFixture
) -> None:
    await client.create(kinds.CONFIG_MAPS, named())
    assert not [record for record in caplog.records if record.name == audit.NAME]


def test_an_eviction_names_the_pod_that_it_is_about(lines: list[logging.LogRecord]) -> None:
    body = {"metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"uid": "u9"}}}
    with audit.on_behalf_of(WEB):
        audit.changed(
            "create",
            kinds.PODS,
            {"status": "Success"},
            cluster="local",
            namespace="n",
            name="a",
            subresource="eviction",
            body=body,
        )

    assert fields(lines[0])["object"]["uid"] == "u9"


@pytest.mark.parametrize(
    "answer",
    [
        {"metadata": "x"},
        {"metadata": {"uid": {"a": 1}, "name": ["b"]}},
        {"metadata": None, "details": "x"},
        {"details": {"uid": 5}},
    ],
)
def test_an_answer_of_any_form_does_no_harm(
    lines: list[logging.LogRecord], answer: dict[str, Any]
) -> None:
    with audit.on_behalf_of(WEB):
        body = {"metadata": {"name": "a"}}
        audit.changed(
            "create", kinds.PODS, answer, cluster="gpu", namespace="n", name="", body=body
        )

    assert fields(lines[0])["object"] == {"resource": "pods", "namespace": "n", "name": "a"}


def test_a_hostile_target_cannot_fill_the_log_by_one_answer(lines: list[logging.LogRecord]) -> None:
    answer = {"metadata": {"name": "n" * 100_000, "uid": "u" * 100_000}}
    with audit.on_behalf_of(WEB):
        audit.changed("create", kinds.PODS, answer, cluster="gpu", namespace="n", name="")

    assert len(logs.JsonFormatter().format(lines[0])) < 2_000


DRY_RUNS = {("targets/probing.py", "probe"), ("pods/target/dropped_fields.py", "find")}


def test_whatever_writes_goes_through_the_client_that_has_it_told() -> None:
    """All else asks by `request`, which only reads."""
    root = Path(vnode.__file__).parent
    found = {
        (str(file.relative_to(root)), function.name)
        for file in root.rglob("*.py")
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.AsyncFunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("client.request")
        if ast.unparse(call.args[0]) != "'GET'"
    }
    assert {place for place in found if not place[0].startswith("cli/")} == DRY_RUNS
