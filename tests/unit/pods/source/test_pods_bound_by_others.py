"""Pods that somebody else has bound to a virtual node get a chaperon without a reservation."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from tests.unit.pods.bound_pods import BoundPodsEnvironment, is_allowed, new_pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, Denied, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.events import EventRecorder
from vnode.pods import chaperons
from vnode.pods.source import stray_pods
from vnode.pods.source.stray_pods import StrayPods
from vnode.runtime.target_options import TargetOptions

pytestmark = pytest.mark.looptime


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


def others(**metadata) -> dict:
    """Return a pod that somebody else has bound."""
    spec = {"schedulerName": "default-scheduler"}
    return {"spec": spec, "metadata": {"finalizers": [], **metadata}}


async def test_a_pod_that_somebody_else_bound_gets_a_chaperon_that_may_run(
    env: BoundPodsEnvironment,
) -> None:
    async with env.running():
        env.add(**others())
        await asyncio.sleep(1)
        assert is_allowed(env.target.chaperon())
        assert env.brought == ["web"]
        await asyncio.sleep(100)
        assert env.target.writes == [("create", "")]


async def test_secrets_that_the_target_has_tokens_for_are_exchanged_for_them(
    env: BoundPodsEnvironment,
) -> None:
    env.target.link.options = TargetOptions(source_api=("api", "6443"))
    env.tokens = ("exec",)
    volume = {"name": "v", "secret": {"secretName": "exec"}}
    async with env.running():
        pod = others()
        env.add(**{**pod, "spec": {**pod["spec"], "volumes": [volume]}})
        await asyncio.sleep(1)
        made = env.target.chaperon() or {}
        assert chaperons.tokens_of(made) == {"exec"}
        assert objects.spec(made)["volumes"] != [volume]


async def test_a_pod_that_begins_to_end_meanwhile_gets_no_chaperon(
    env: BoundPodsEnvironment,
) -> None:
    async with env.running():
        env.source.fail(None, verb="get", kind=kinds.PODS, delay=1)
        env.add(**others())
        await asyncio.sleep(0.5)
        await env.delete()
        await asyncio.sleep(10)
        assert env.target.writes == []


@pytest.mark.parametrize(
    "error",
    [Denied(403, "", "no quota"), Invalid(422, "", "no such"), NotFound(404, "", "no namespace")],
)
async def test_a_chaperon_that_its_target_refuses_is_told_and_tried_again_later(
    env: BoundPodsEnvironment, error: Denied | Invalid | NotFound
) -> None:
    env.target.server.fail(error, verb="create")
    env.add(**others())
    async with env.running(seconds=10):
        (message,) = env.event_messages("DelegateRefused")
        assert error.message in message
        assert env.target.writes == [("create", "")]
        assert not env.is_ending()
        await asyncio.sleep(30)
        assert is_allowed(env.target.chaperon())


async def test_a_chaperon_that_was_made_meanwhile_is_no_refusal(env: BoundPodsEnvironment) -> None:
    env.target.server.fail(AlreadyExists(409, "AlreadyExists", "it is there"), verb="create")
    env.add(**others())
    async with env.running(seconds=10):
        assert env.event_messages("DelegateRefused") == []
        assert env.target.writes == [("create", "")]


async def test_a_pod_that_has_run_is_not_begun_anew(env: BoundPodsEnvironment) -> None:
    env.add(status={"phase": "Running"}, **others())
    async with env.running():
        assert env.is_ending()
        assert env.target.writes == []


async def test_a_pod_of_another_namespace_is_told_that_the_node_is_not_for_it(
    env: BoundPodsEnvironment,
) -> None:
    async with env.running():
        pod = new_pod("web", env.target.node, **others(namespace="elsewhere"))
        env.source.add(kinds.PODS, pod)
        await asyncio.sleep(1)
        assert "is not for pods of namespace elsewhere" in env.event_messages("DelegateRefused")[0]
        assert env.target.writes == []


async def test_the_pod_of_a_daemon_set_is_nothing_to_a_target(env: BoundPodsEnvironment) -> None:
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    env.add(**others(ownerReferences=[owner]))
    async with env.running(seconds=10):
        assert env.target.writes == []
        assert not env.is_ending()


async def test_the_pod_of_a_daemon_set_is_ready_so_that_rollouts_of_the_set_go_on(
    env: BoundPodsEnvironment,
) -> None:
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    env.add(**others(ownerReferences=[owner]))

    def status() -> Object:
        [pod] = env.source.all(kinds.PODS)
        return objects.status(pod)

    async with env.running(seconds=10):
        assert (objects.condition({"status": status()}, "Ready") or {})["status"] == "True"
        assert status()["reason"] == "VirtualNode"
        assert "podIP" not in status()
        [pod] = env.source.all(kinds.PODS)
        # As Kubernetes writes once, when the target is lost.
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await env.source.client().patch(
            kinds.PODS,
            objects.name(pod),
            unready,
            objects.namespace(pod),
            subresource="status",
            strategic=True,
        )
        await asyncio.sleep(1)
        assert (objects.condition({"status": status()}, "Ready") or {})["status"] == "True"


LURED = {"tolerations": [{"operator": "Exists"}], "schedulerName": "default-scheduler"}
CONTROLLED = [{"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]


async def test_a_pod_that_came_because_it_tolerates_everything_is_made_anew_elsewhere(
    clock: Clock,
) -> None:
    env = BoundPodsEnvironment(clock, label_required=True)
    async with env.running():
        env.add(metadata={"finalizers": [], "ownerReferences": CONTROLLED}, spec=LURED)
        await asyncio.sleep(1)
        assert env.pod() is None
        assert "tolerates every taint" in env.event_messages("StrayPod")[0]
        assert env.target.writes == []


async def test_where_successors_come_to_virtual_nodes_again_they_stay_after_a_minute(
    clock: Clock,
) -> None:
    """The webhook does not see them: without an end, thousands would be made and deleted."""
    env = BoundPodsEnvironment(clock, label_required=True)
    async with env.running():
        for number in range(8):
            name = f"p{number}"
            owned = {"finalizers": [], "ownerReferences": CONTROLLED}
            env.add(name, metadata=owned, spec=LURED)
            await asyncio.sleep(10)
            assert (env.pod(name) is None) is (number < 7)


async def test_of_owners_that_are_made_up_some_are_remembered(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may make pods names a virtual node in them, and an owner that there is not."""
    monkeypatch.setattr(stray_pods, "MOST", 5)
    server = APIServer("c1", clock)
    client = server.client()
    strays = StrayPods(client, EventRecorder(client, "vnode", clock), clock)
    for number in range(8):
        owners = [{**CONTROLLED[0], "uid": f"made-up-{number}"}]
        lured = {"metadata": {"finalizers": [], "ownerReferences": owners}, "spec": LURED}
        pod = server.add(kinds.PODS, new_pod(f"p{number}", "admiralty-c2", **lured))
        assert await strays.send_away(pod)
        assert len(strays.since) <= 5


@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        ({}, LURED),
        (
            {"ownerReferences": CONTROLLED},
            {"tolerations": [{"key": keys.PROVIDER_LABEL, "operator": "Exists"}]},
        ),
    ],
    ids=["without a controller", "meant for it"],
)
async def test_a_pod_that_has_no_successor_or_was_meant_to_come_stays_and_is_told_why(
    clock: Clock, metadata, spec
) -> None:
    env = BoundPodsEnvironment(clock, label_required=True)
    async with env.running():
        env.add(
            metadata={"finalizers": [], **metadata},
            spec={"schedulerName": "default-scheduler", **spec},
        )
        await asyncio.sleep(1)
        assert env.pod() is not None
        assert env.event_messages("DelegateRefused")


async def test_a_pod_of_a_namespace_without_the_label_is_sent_once_it_has_it(clock: Clock) -> None:
    env = BoundPodsEnvironment(clock, label_required=True)
    async with env.running():
        env.add(**others())
        await asyncio.sleep(100)
        assert "does not have the label multicluster-scheduler=enabled" in "".join(
            env.event_messages("DelegateRefused")
        )
        assert env.target.writes == []
        assert env.brought == []
        env.label_namespace()
        await asyncio.sleep(1)
        assert is_allowed(env.target.chaperon())


async def test_a_pod_that_is_created_on_a_node_with_our_scheduler_is_not_taken_for_lost(
    env: BoundPodsEnvironment,
) -> None:
    """As `kubectl debug --copy-to --same-node` does; nobody has bound it."""
    async with env.running():
        env.add(status={"phase": "Pending", "conditions": []})
        await asyncio.sleep(1)
        assert is_allowed(env.target.chaperon())
        assert not env.is_ending()
