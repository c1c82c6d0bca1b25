"""No object waits for the Admiralty that has gone, however it is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Conflict, Denied
from vnode.api.kinds import Kind
from vnode.cli.remove import admiralty_finalizers
from vnode.cli.remove.report import RemovalReport

pytestmark = pytest.mark.looptime

OURS, OTHERS = keys.PREFIX + "default-c2", "example.com/kept"


def add(server: APIServer, kind: Kind, **metadata: Any) -> None:
    label = {keys.HAS_FINALIZER: "true", "app": "web"}
    head = {"name": "web", "namespace": "default", "labels": label, "finalizers": [OURS, OTHERS]}
    more = {"type": "Opaque"} if kind is kinds.SECRETS else {}
    server.add(kind, {"metadata": {**head, **metadata}, **more})


@pytest.mark.parametrize("kind", admiralty_finalizers.COPIED, ids=lambda kind: kind.plural)
async def test_what_admiralty_copied_can_be_deleted_again(clock: Clock, kind: Kind) -> None:
    server, lines = APIServer("c1", clock), list[str]()
    add(server, kind, finalizers=[OURS])
    await server.client().delete(kind, "web", "default")
    assert server.find(kind, "web", "default")
    report = RemovalReport(lines.append)
    await admiralty_finalizers.release(server.client(), report)
    assert report.left == []
    assert server.find(kind, "web", "default") is None
    assert lines == [f"took Admiralty's finalizers off 1 {kind.kind}"]


async def test_finalizers_of_others_stay(clock: Clock) -> None:
    server = APIServer("c1", clock)
    add(server, kinds.SECRETS)
    server.fail(Conflict(409, "Conflict", "changed"), verb="patch", times=1)
    report = RemovalReport(lambda _text: None)
    await admiralty_finalizers.release(server.client(), report)
    found = server.find(kinds.SECRETS, "web", "default") or {}
    assert objects.finalizers(found) == [OTHERS]
    assert objects.labels(found) == {"app": "web"}
    assert report.left == []
    assert await admiralty_finalizers.held(server.client(), kinds.SECRETS) == []


async def test_what_may_not_be_changed_is_left_and_named(clock: Clock) -> None:
    server = APIServer("c1", clock)
    add(server, kinds.SECRETS)
    server.fail(Denied(403, "Forbidden", "no"), verb="patch")
    report = RemovalReport(lambda _text: None)
    await admiralty_finalizers.release(server.client(), report)
    [left] = report.left
    assert left.startswith("finalizers of Admiralty on secrets: ")
