"""What tests of placement share: a policy, and c2 and c3 with so many places for its pods.

All of it is called `web`, and in namespace default. A place is a resource that nodes offer and
pods take, so that a test decides how many pods fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests import kit, placement_policies
from vnode.api import kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

PLACE = "example.com/place"
C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))

Policy = Callable[..., Awaitable[None]]
Rooms = Callable[[int, int], Awaitable[None]]


@pytest.fixture
async def policy(source: Client) -> AsyncIterator[Policy]:
    """Yield a function that creates the PlacementPolicy `web`, and waits until it is in force."""

    async def create(*targets: Object, **spec: Any) -> None:
        await placement_policies.create(source, "web", targets=targets, **spec)

    yield create
    await placement_policies.delete(source, "web")


async def amend(source: Client, **spec: Any) -> None:
    """Change fields of the policy `web`."""
    await source.patch(kinds.PLACEMENT_POLICIES, "web", {"spec": spec}, "default")


async def until_told(source: Client, reason: str, text: str) -> None:
    """Wait until an Event of that reason says so of a policy."""
    selector = f"reason={reason},involvedObject.kind=PlacementPolicy"
    await kit.until_event(source, "default", selector, text)


async def offer_places(target: Client, node: str, count: int | None) -> None:
    """Have a node offer so many places; None: it knows of none."""
    quantity = None if count is None else str(count)
    status = {"capacity": {PLACE: quantity}, "allocatable": {PLACE: quantity}}
    await target.patch(kinds.NODES, node, {"status": status}, subresource="status")


@pytest.fixture
async def rooms(source: Client, c2: Client, c3: Client) -> AsyncIterator[Rooms]:
    """Yield a function that sets the places of c2 and c3, and waits until the source knows them."""

    async def offer(target: Client, virtual: str, count: int | None) -> None:
        node = min(objects.name(node) for node in await target.list(kinds.NODES))
        await offer_places(target, node, count)

        def knows(node: Object) -> bool:
            allocatable = objects.status(node).get("allocatable") or {}
            return bool(allocatable.get(PLACE, "0") == str(count or 0))

        await kit.until_one(source, kinds.NODES, virtual, "", knows)

    async def put(first: int, second: int) -> None:
        await offer(c2, C2, first)
        await offer(c3, C3, second)

    yield put
    await offer(c2, C2, None)
    await offer(c3, C3, None)


def place_pod(name: str = "web", **spec: Any) -> Object:
    """Return a pod that takes a place."""
    template = kit.pod(name, **spec)
    resources = objects.spec(template)["containers"][0]["resources"]
    resources["requests"][PLACE] = "1"
    resources["limits"] = {PLACE: "1"}
    return template


async def deploy(source: Client, replicas: int) -> None:
    """Create a Deployment whose pods take a place each."""
    body = kit.deployment("web", replicas, place_pod())
    await source.create(kinds.DEPLOYMENTS, body, "default")


def there(pods: dict[str, Object]) -> dict[str, int]:
    """Count by virtual node the pods that run; those that do not are under ""."""
    live = [pod for pod in pods.values() if not objects.is_terminating(pod)]
    return dict(Counter(objects.node_name(p) if kit.phase(p) == "Running" else "" for p in live))


async def until_there(source: Client, **expected: int) -> dict[str, Object]:
    """Wait until so many pods run behind c2 and c3, and so many wait."""
    nodes = {"c2": C2, "c3": C3, "waiting": ""}
    wanted = {nodes[name]: count for name, count in expected.items()}
    return await kit.until_pods(source, "web", lambda pods: there(pods) == wanted)
