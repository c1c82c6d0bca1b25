"""A pod gets what its policy preserves of the pod that it replaces, before it goes anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import background
from tests.apiserver.links import following
from tests.apiserver.server import APIServer
from tests.unit.pods.policies import Fixed, spread
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ServerError
from vnode.api.objects import Object
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.failover.preserved_state import PreservedStates
from vnode.planning import preserving
from vnode.planning.failover import Failover, PreservedValue
from vnode.pods.source import proxy_state

pytestmark = pytest.mark.looptime

AT, IP = "example.com/at", "example.com/former-ip"
WANTED = (PreservedValue(AT, AT), PreservedValue(IP, from_status=("podIP",)))
GATES = [{"name": keys.AWAITS_STATE}]
MOVED = {"type": keys.AWAITS_REPLACEMENT, "status": "True"}


class PreservingEnvironment:
    """A source with a ReplicaSet, whose pods have a finalizer."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("c1", clock)
        self.policies = Fixed(spread(failover=Failover(preserve=WANTED)))
        self._clock = clock
        self.asked = 0

    def is_moved(self, pod: Object) -> bool:
        self.asked += 1
        return objects.condition(pod, keys.AWAITS_REPLACEMENT) is not None

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        client = self.server.client()
        proxies = Informer(client, kinds.PODS, indexes=proxy_state.INDEXES)
        events = EventRecorder(client, "vnode", self._clock)
        states = PreservedStates(
            client,
            proxies,
            lambda owner: proxies.store.by_index(proxy_state.CONTROLLER_INDEX, owner),
            self.is_moved,
            self.policies,
            events,
        )
        async with following(proxies), background.running(states.run(), events.run()):
            await asyncio.sleep(1)
            yield

    def add(self, name: str, *, owner: str = "rs", namespace: str = "default", **spec: Any) -> None:
        reference = {"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        metadata = {
            "name": name,
            "namespace": namespace,
            "finalizers": ["example.com/kept"],
            "ownerReferences": [reference],
        }
        spec = {"containers": [{"name": "c", "image": "i"}], **spec}
        self.server.add(kinds.PODS, {"metadata": metadata, "spec": spec})

    async def end(self, name: str, *conditions: Object, at: str = "", ip: str = "") -> None:
        """End a pod that has come so far."""

        def change(pod: Object) -> None:
            pod["metadata"]["annotations"] = {AT: at or name}
            pod["status"] = {"podIP": ip or name, "conditions": list(conditions)}

        self.server.change(kinds.PODS, name, "default", change)
        await self.server.client("user").delete(kinds.PODS, name, "default")

    def new(self, name: str, **spec: Any) -> None:
        """Make a pod as the owner and the webhook do."""
        self.add(name, schedulingGates=GATES, **spec)

    def pod(self, name: str, namespace: str = "default") -> Object:
        return self.server.find(kinds.PODS, name, namespace) or {}

    def given(self, name: str, namespace: str = "default") -> tuple[str | None, str | None]:
        """Return what a pod was given; it must be free to go."""
        pod = self.pod(name, namespace)
        assert not objects.spec(pod).get("schedulingGates")
        annotations = objects.annotations(pod)
        return annotations.get(AT), annotations.get(IP)


@pytest.fixture
async def env(clock: Clock) -> PreservingEnvironment:
    return PreservingEnvironment(clock)


async def test_a_replacement_gets_annotations_and_status_of_the_moved_pod(
    env: PreservingEnvironment,
) -> None:
    env.add("old", nodeName="n1")
    async with env.leading():
        await env.end("old", MOVED)
        env.new("new")
        await asyncio.sleep(1)
        assert env.given("new") == ("old", "old")
        assert objects.annotations(env.pod("new"))[keys.PRESERVED_FROM] == objects.uid(
            env.pod("old")
        )
        assert env.server.count("patch", kinds.PODS) == 1


async def test_each_pod_is_replaced_once_by_whoever_leads(env: PreservingEnvironment) -> None:
    for name in ("a", "b"):
        env.add(name, nodeName="n1")

    async with env.leading():
        await env.end("a", MOVED)
        env.new("for-a")
        await asyncio.sleep(5)

    async with env.leading():
        await env.end("b", MOVED)
        for name in ("for-b", "for-nobody"):
            env.new(name)

        await asyncio.sleep(5)
        given = [env.given(name)[0] for name in ("for-a", "for-b", "for-nobody")]
        assert given == ["a", "b", None]


async def test_pods_that_others_end_or_of_other_owners_are_not_preserved(
    env: PreservingEnvironment,
) -> None:
    env.add("deleted", nodeName="n1")
    env.add("other", owner="another", nodeName="n1")
    async with env.leading():
        await env.end("deleted")
        await env.end("other", MOVED)
        env.new("new")
        await asyncio.sleep(1)
        assert env.given("new") == (None, None)


async def test_a_pod_of_another_namespace_with_that_owner_gets_nothing(
    env: PreservingEnvironment,
) -> None:
    """Whoever creates pods writes the owner reference; the UID of a ReplicaSet is no secret."""
    env.add("old", nodeName="n1")
    async with env.leading():
        await env.end("old", MOVED)
        env.new("forged", namespace="hostile")
        await asyncio.sleep(1)
        env.new("new")
        await asyncio.sleep(1)
        assert env.given("forged", "hostile") == (None, None)
        assert env.given("new") == ("old", "old")


async def test_other_gates_stay(env: PreservingEnvironment) -> None:
    other = {"name": "example.com/quota"}
    async with env.leading():
        env.add("new", schedulingGates=[other, *GATES])
        await asyncio.sleep(1)
        assert objects.spec(env.pod("new"))["schedulingGates"] == [other]


async def test_a_pod_whose_policy_has_ended_goes_without(env: PreservingEnvironment) -> None:
    env.policies.policy = None
    env.add("old", nodeName="n1")
    await env.end("old", MOVED)
    env.new("new")
    async with env.leading():
        assert env.given("new") == (None, None)


async def test_a_value_that_is_too_long_is_left_out_and_told(env: PreservingEnvironment) -> None:
    env.add("old", nodeName="n1")
    async with env.leading():
        await env.end("old", MOVED, at="x" * (preserving.LONGEST + 1))
        env.new("new")
        await asyncio.sleep(1)
        assert env.given("new") == (None, "old")
        (event,) = env.server.all(kinds.EVENTS)
        assert event["message"] == (
            "example.com/at of pod/default/old is not preserved: it has over 4096 bytes"
        )


async def test_a_write_that_fails_is_tried_again(env: PreservingEnvironment) -> None:
    env.add("old", nodeName="n1")
    env.server.fail(ServerError(500, "", "no leader"), verb="patch", times=3)
    async with env.leading():
        await env.end("old", MOVED)
        env.new("new")
        await asyncio.sleep(5)
        assert env.given("new") == ("old", "old")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("podIP", "10.0.0.1"),
        ("containerStatuses[1].restartCount", "3"),
        ("containerStatuses[0].state", '{"running":{"startedAt":"t"}}'),
        ("containerStatuses[7].name", None),
        ("podIP.x", None),
        ("podIP[0]", None),
    ],
)
def test_values_of_a_status(path: str, expected: str | None) -> None:
    running = {"running": {"startedAt": "t"}}
    status = {"podIP": "10.0.0.1", "containerStatuses": [{"state": running}, {"restartCount": 3}]}
    steps = preserving.parse_path(path)
    assert steps
    found, _ = preserving.preserved([PreservedValue("a", from_status=steps)], {"status": status})
    assert found.get("a") == expected


@pytest.mark.parametrize("text", ["", ".a", "a.", "a..b", "[0]", "a[01]", "a[x]", "a[-1]", "a[0"])
def test_what_is_no_path(text: str) -> None:
    assert preserving.parse_path(text) is None


async def test_those_that_many_pods_replace_are_not_gone_through_for_each(
    env: PreservingEnvironment,
) -> None:
    count = 60
    for number in range(count):
        env.add(f"old-{number}", nodeName="n1")

    async with env.leading():
        for number in range(count):
            await env.end(f"old-{number}", MOVED)

        await asyncio.sleep(1)
        for number in range(count):
            env.new(f"new-{number}")

        await asyncio.sleep(5)
        given = {env.given(f"new-{number}")[0] for number in range(count)}
        assert given == {f"old-{number}" for number in range(count)}
        assert env.asked < 10 * count
