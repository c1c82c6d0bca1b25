"""Placement policies on a real fleet: a Deployment that is divided, overflows and shrinks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests import kit
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

PLACE = "example.com/place"
C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))

Policy = Callable[..., Awaitable[None]]
Rooms = Callable[[int, int], Awaitable[None]]


@pytest.fixture
async def policy(source: Client) -> AsyncIterator[Policy]:
    """Creates the PlacementPolicy `web`, and waits until it is in force."""

    async def create(*targets: Object, **spec: Any) -> None:
        body = {
            "apiVersion": kinds.PLACEMENT_POLICIES.api_version,
            "kind": kinds.PLACEMENT_POLICIES.kind,
            "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "targets": targets, **spec},
        }
        await source.create(kinds.PLACEMENT_POLICIES, body, "default")
        await kit.until_one(
            source,
            kinds.PLACEMENT_POLICIES,
            "web",
            "default",
            lambda obj: kit.has_condition(obj, "Accepted"),
        )

    yield create
    await source.delete(kinds.PLACEMENT_POLICIES, "web", "default")


@pytest.fixture
async def rooms(source: Client, c2: Client, c3: Client) -> AsyncIterator[Rooms]:
    """Has c2 and c3 offer so many places, and waits until their source knows."""

    async def offer(target: Client, virtual: str, count: int | None) -> None:
        node = min(objects.name(node) for node in await target.list(kinds.NODES))
        said = None if count is None else str(count)
        status = {"capacity": {PLACE: said}, "allocatable": {PLACE: said}}
        await target.patch(kinds.NODES, node, {"status": status}, subresource="status")

        def knows(node: Object) -> bool:
            allocatable = objects.status(node).get("allocatable") or {}
            return bool(allocatable.get(PLACE, "0") == (said or "0"))

        await kit.until_one(source, kinds.NODES, virtual, "", knows)

    async def put(first: int, second: int) -> None:
        await offer(c2, C2, first)
        await offer(c3, C3, second)

    yield put
    await offer(c2, C2, None)
    await offer(c3, C3, None)


async def deploy(source: Client, replicas: int) -> None:
    """Create a Deployment whose pods take a place each."""
    template = kit.pod("web")
    resources = objects.spec(template)["containers"][0]["resources"]
    resources["requests"][PLACE] = "1"
    resources["limits"] = {PLACE: "1"}
    await source.create(kinds.DEPLOYMENTS, kit.deployment("web", replicas, template), "default")


async def scale(source: Client, replicas: int) -> None:
    await source.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": replicas}}, "default")


def there(pods: dict[str, Object]) -> dict[str, int]:
    """Count by virtual node the pods that run; those that do not are under ""."""
    live = [pod for pod in pods.values() if not objects.is_terminating(pod)]
    return dict(Counter(objects.node_name(p) if kit.phase(p) == "Running" else "" for p in live))


async def until_there(source: Client, seconds: float = 40, **expected: int) -> dict[str, Object]:
    """Wait until so many pods run behind c2 and c3, and so many wait."""
    nodes = {"c2": C2, "c3": C3, "waiting": ""}
    wanted = {nodes[name]: count for name, count in expected.items()}
    return await kit.until(
        source,
        kinds.PODS,
        lambda pods: there(pods) == wanted,
        namespace="default",
        label_selector="app=web",
        seconds=seconds,
    )


async def until_costs_are_written(source: Client) -> None:
    await kit.until(
        source,
        kinds.PODS,
        lambda pods: all(keys.DELETION_COST in objects.annotations(p) for p in pods.values()),
        namespace="default",
        label_selector="app=web",
    )


async def test_a_deployment_is_divided_by_weight_grows_and_shrinks(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    await policy({"cluster": "c2", "weight": 2}, {"cluster": "c3", "weight": 1, "minReplicas": 1})
    await deploy(source, 6)
    await until_there(source, c2=4, c3=2)
    await scale(source, 12)
    pods = await until_there(source, c2=8, c3=4)
    assert len(pods) == 12
    await until_costs_are_written(source)
    await scale(source, 3)
    await until_there(source, c2=2, c3=1)


async def test_pods_overflow_after_the_threshold_and_shrink_to_the_plan(
    fleet: Fleet, source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(2, 50)
    await policy(
        {"cluster": "c2", "weight": 2},
        {"cluster": "c3", "weight": 1},
        overflow={"afterUnschedulableFor": "12s"},
    )
    await deploy(source, 6)
    pods = await until_there(source, c2=2, c3=2, waiting=2)
    waiting = next(pod for pod in pods.values() if not objects.node_name(pod))
    said = await kit.until_one(
        source,
        kinds.PODS,
        objects.name(waiting),
        "default",
        lambda pod: (objects.condition(pod, "PodScheduled") or {}).get("message"),
    )
    message = (objects.condition(said, "PodScheduled") or {})["message"]
    # The message is of the pod's last attempt, when fewer pods may have been known.
    plan = r"c3: planned elsewhere by placementpolicy/web: [12] of [3-6] here, by weight 1"
    assert re.search(rf"{plan}; waiting for c2 until 2\S+Z", message), message
    pods = await until_there(source, c2=2, c3=4)
    await until_places_are_explained(fleet, source, pods)
    await until_costs_are_written(source)
    await scale(source, 3)
    await until_there(source, c2=2, c3=1)


async def until_places_are_explained(fleet: Fleet, source: Client, pods: dict[str, Object]) -> None:
    """Look for the reasons of four planned pods and two that came by overflow."""
    reasons = {key: objects.annotations(pod)[keys.PLACED] for key, pod in pods.items()}
    overflowed = [key for key, reason in reasons.items() if reason.startswith("overflowed")]
    assert len(overflowed) == 2
    assert all(reasons[key].startswith("overflowed from c2 after 1") for key in overflowed)
    planned = r"planned here: [1-4] of [1-6] by weight [12] \(placementpolicy/web\)"
    assert sum(bool(re.fullmatch(planned, reason)) for reason in reasons.values()) == 4
    name, reason = objects.name(pods[overflowed[0]]), reasons[overflowed[0]]
    done = vnode("explain", "pod", name, "-n", "default", "--kubeconfig", fleet.kubeconfig("c1"))
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert reason in told
    assert "placementpolicy/web is for the pod, mode Spread" in told
    assert "deployment/default/web has 6 replicas" in told
    await kit.until(
        source,
        kinds.EVENTS,
        lambda events: any(
            event["involvedObject"]["name"] == name and reason in event.get("message", "")
            for event in events.values()
        ),
        namespace="default",
    )


async def test_a_job_stays_together(source: Client, policy: Policy) -> None:
    await policy(mode="Single")
    template = kit.pod("web", restartPolicy="Never")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web"},
        "spec": {
            "parallelism": 5,
            "completions": 5,
            "template": {
                "metadata": {
                    "labels": {"app": "web"},
                    "annotations": objects.annotations(template),
                },
                "spec": template["spec"],
            },
        },
    }
    await source.create(kinds.JOBS, job, "default")
    pods = await kit.until(
        source,
        kinds.PODS,
        lambda pods: len(pods) == 5 and all(map(objects.node_name, pods.values())),
        namespace="default",
        label_selector="app=web",
    )
    assert len({objects.node_name(pod) for pod in pods.values()}) == 1
