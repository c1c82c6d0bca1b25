"""An installation ends once the API server answers for its kinds, not when it promises to."""

from __future__ import annotations

import pytest

from tests.apiserver.faults import RequestFault
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ApiError, ConfigError, NotFound, TooManyRequests
from vnode.api.objects import Object, Objects
from vnode.cli import installation, manifests

CRDS = manifests.crds()
UNSERVED = NotFound(404, "", "HTTP 404, and the answer is no Kubernetes Status")
STARTING = TooManyRequests(429, "TooManyRequests", "storage is (re)initializing")


@pytest.mark.parametrize("answer", [UNSERVED, STARTING])
async def test_it_waits_for_a_kind_that_is_established_but_not_served(answer: ApiError) -> None:
    server = APIServer("c1", SystemClock())
    crds = established(server)
    unserved = server.faults.add(RequestFault(answer, "list", kinds.SOURCES, times=3))
    await installation.wait_served(server.client("admin"), crds)
    assert unserved.met == 3


async def test_a_kind_that_is_never_served_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    server = APIServer("c1", SystemClock())
    crds = established(server)
    server.faults.add(RequestFault(UNSERVED, "list", kinds.SOURCES, times=None))
    monkeypatch.setattr(installation, "_SERVED", 0.3)
    with pytest.raises(ConfigError, match=rf"^{kinds.SOURCES.resource} is established, but"):
        await installation.wait_served(server.client("admin"), crds)


def established(server: APIServer) -> Objects:
    """Have the server keep vnode's CRDs as established; return them."""
    conditions = [{"type": "Established", "status": "True"}]
    found: Objects = []
    for crd in CRDS:
        obj: Object = {**crd, "status": {"conditions": conditions}}
        server.add(kinds.CRDS, obj)
        found.append(obj)

    assert kinds.SOURCES.resource in map(objects.name, found)
    return found
