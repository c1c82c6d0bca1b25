"""Another cluster takes the place of a Target, on API servers in memory, however often it is ended.

The source's agent is played: it recognizes the cluster that was confirmed, takes the chaperons of
deleted pods away, and deletes pods that the Target's cluster does not have.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from tests import background
from tests.apiserver.requests import APIRequest
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, TooManyRequests, Unreachable
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli.connect.connector import Connector
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.drain import command as drains
from vnode.cli.drain.filters import DrainRules
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.cli.remove.report import RemovalReport
from vnode.cli.replace import former, steps
from vnode.cli.replace.replacing import Replacement
from vnode.cli.replace.steps import ReplacementState
from vnode.kube.client import Client
from vnode.kube.informer import Informer

pytestmark = pytest.mark.looptime

KEY = TargetKey("team", "gpu")
NODE = KEY.node_name


class ReplacingEnvironment:
    """The source and two clusters, of which the Target is the first; pods run there."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.run: asyncio.Task[None] | None = None  # the replacement under way
        self.requests, self.ends_at = 0, 0
        self.is_blind = False  # the agent is: it recognizes no cluster
        self.source, self.old, self.new = (
            APIServer(name, clock, latency=self._count, seed=number)
            for number, name in enumerate(("c1", "old", "new"))
        )
        self.lines: list[str] = []
        self.me = Identity("c1", self.uid(self.source))
        for server in (self.source, self.old, self.new):
            server.add(kinds.NAMESPACES, {"metadata": {"name": "team"}})

        labels = {
            keys.PROVIDER_LABEL: keys.PROVIDER,
            keys.TARGET_NAME: "gpu",
            keys.TARGET_NAMESPACE: "team",
        }
        self.source.add(kinds.NODES, {"metadata": {"name": NODE, "labels": labels}})

    def _count(self) -> float:
        self.requests += 1
        if self.run is not None and self.requests == self.ends_at:
            self.run.cancel()

        return 0.01

    @staticmethod
    def uid(server: APIServer) -> str:
        return objects.uid(server.find(kinds.NAMESPACES, "kube-system") or {})

    def add_pod(self, name: str) -> None:
        """Store a pod that runs in the old cluster, and its chaperon there."""
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w"}
        owners = [{**owner, "controller": True}]
        metadata = {"namespace": "team", "name": name, "ownerReferences": owners}
        pod = self.source.add(kinds.PODS, {"metadata": metadata, "spec": {"nodeName": NODE}})
        self.add_chaperon(name, objects.uid(pod))

    def add_chaperon(self, parent: str, uid: str) -> None:
        annotations = {
            keys.PARENT_NAME: parent,
            keys.PARENT_NAMESPACE: "team",
            keys.PARENT_CLUSTER_UID: self.me.uid,
            keys.TARGET: str(KEY),
        }
        labels = {keys.PARENT_UID: uid, keys.PARENT_CLUSTER_NAME: "c1"}
        head = {"namespace": "team", "name": names.chaperon(parent, uid)}
        metadata = {**head, "labels": labels, "annotations": annotations}
        self.old.add(kinds.POD_CHAPERONS, {"metadata": metadata})

    def add_copy(self) -> None:
        """Store a ConfigMap that followed the pods into the old cluster."""
        annotations = {keys.PARENT_CLUSTER_UID: self.me.uid}
        head = {"namespace": "team", "name": "settings", "annotations": annotations}
        labels = {keys.PARENT_CLUSTER_NAME: "c1"}
        self.old.add(kinds.CONFIG_MAPS, {"metadata": {**head, "labels": labels}})

    # What the agent does.

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[None]:
        client = self.source.client("agent")
        targets = Informer(client, kinds.TARGETS, namespace="team")
        pods = Informer(client, kinds.PODS, namespace="team")
        targets.subscribe(self._on_target)
        pods.subscribe(self._on_pod)
        async with background.running(targets.run(), pods.run()):
            yield

    def _on_target(self, _old: Object | None, new: Object | None) -> None:
        if new is None or (server := self.led_to()) is None:
            return

        uid, known = self.uid(server), objects.status(new).get("clusterUID")
        confirmed = objects.annotations(new).get(keys.CONFIRM_CLUSTER)
        if self.is_blind or known == uid or (known and confirmed != uid):
            return

        ready = {"type": "Ready", "status": "True"}
        status = {"clusterUID": uid, "conditions": [ready]}
        self.source.change(kinds.TARGETS, "gpu", "team", lambda obj: obj.update(status=status))
        held = {
            objects.labels(chaperon)[keys.PARENT_UID]
            for chaperon in server.all(kinds.POD_CHAPERONS)
        }
        for pod in self.source.all(kinds.PODS):
            if objects.uid(pod) not in held:
                self.source.remove(kinds.PODS, objects.name(pod), "team")

    def _on_pod(self, _old: Object | None, new: Object | None) -> None:
        """End a delegate, and then its pod, unless its cluster is away."""
        if new is None or not objects.is_terminating(new):
            return

        name = names.chaperon(objects.name(new), objects.uid(new))
        if self.old.find(kinds.POD_CHAPERONS, name, "team"):
            self.old.remove(kinds.POD_CHAPERONS, name, "team")

        self.source.remove(kinds.PODS, objects.name(new), "team")

    def led_to(self) -> APIServer | None:
        """Return the server that the Target's Secret names."""
        secret = self.source.find(kinds.SECRETS, "vnode-target-gpu", "team")
        if secret is None:
            return None

        text = base64.b64decode(secret["data"]["config"]).decode()
        return self.new if "https://new" in text else self.old

    # What is run.

    def connector(self, server: APIServer) -> Connector:
        endpoint = ClusterEndpoint(f"https://{server.name}", None)
        desired = DesiredConnection("team", "team", "gpu", "c1", endpoint, 3600, confirmed=True)
        now = self.clock.now().timestamp
        clients = self.source.client(), server.client()
        return Connector(*clients, desired, self.lines.append, now=now)

    @asynccontextmanager
    async def former(self, _local: Client, _target: Object) -> AsyncIterator[Client]:
        server = self.led_to()
        assert server is not None
        yield server.client("c1")

    async def replace(self, *, lost: bool = False, dry_run: bool = False) -> None:
        """Run `vnode replace-target gpu`, beginning with its look at the present state."""
        source, new = self.source.client(), self.new.client()
        target = await source.get(kinds.TARGETS, "gpu", "team")
        report = RemovalReport(self.lines.append)
        drain = partial(drains.drain, source, "gpu", "team", DrainRules(), grace=None, limit=None)
        replacement = Replacement(
            source,
            new,
            target,
            KEY,
            self.me,
            self.uid(self.new),
            former=self.former,
            drain=partial(drain, dry_run=dry_run),
            switch=self.connector(self.new).run,
            end_source=partial(asyncio.sleep, 0),
            report=report,
            lost=lost,
            dry_run=dry_run,
        )
        now = ReplacementState(
            replacement.name,
            objects.status(target).get("clusterUID", ""),
            replacement.wanted,
            self.me.uid,
            await former.ask(source, target, self.former),
            len(await replacement.pods()),
            lost=lost,
        )
        await replacement.run(steps.decide(now))
        assert report.left == []

    async def replace_until(self, ends_at: int, *, lost: bool = False) -> bool:
        """Do that, but end it at a request; return whether it was ended."""
        self.requests, self.ends_at = 0, ends_at
        self.run = asyncio.create_task(self.replace(lost=lost))
        with suppress(asyncio.CancelledError):
            await self.run

        return self.run.cancelled()

    # What came of it.

    def assert_replaced(self) -> None:
        target = self.source.find(kinds.TARGETS, "gpu", "team") or {}
        node = self.source.find(kinds.NODES, NODE) or {}
        assert objects.status(target)["clusterUID"] == self.uid(self.new)
        assert self.led_to() is self.new
        assert not objects.spec(node).get("unschedulable")
        assert self.source.all(kinds.PODS) == []

    def assert_former_is_empty(self) -> None:
        for kind in (kinds.POD_CHAPERONS, kinds.CONFIG_MAPS):
            assert self.old.all(kind) == [], kind.plural


@asynccontextmanager
async def env(clock: Clock) -> AsyncIterator[ReplacingEnvironment]:
    """Yield an environment with three pods, a candidate of a pod that waits, and a copy."""
    there = ReplacingEnvironment(clock)
    async with there.agent():
        await there.connector(there.old).run()
        target = there.source.find
        await there.source.until(
            lambda: bool(objects.status(target(kinds.TARGETS, "gpu", "team") or {}))
        )
        for number in range(3):
            there.add_pod(f"web-{number}")

        there.add_chaperon("waits", "pending")
        there.add_copy()
        there.lines.clear()
        yield there


async def test_it_tells_each_step_in_the_words_of_kubectl(clock: Clock) -> None:
    async with env(clock) as there:
        await there.replace()
        there.assert_replaced()
        there.assert_former_is_empty()
        assert "target team/gpu: deleted 1 copied object" in there.lines
        assert there.lines[-2:] == ["target/gpu condition met", f"node/{NODE} uncordoned"]


async def test_a_dry_run_changes_nothing(clock: Clock) -> None:
    async with env(clock) as there:
        servers = there.source, there.old, there.new
        for server in servers:
            server.requests.clear()

        await there.replace(dry_run=True)
        assert "target/gpu configured" in " ".join(there.lines)
        verbs = {request.verb for server in servers for request in server.requests}
        assert verbs <= {"get", "list", "watch"}


@pytest.mark.no_cover
@pytest.mark.parametrize("lost", [False, True])
async def test_ended_at_any_request_it_goes_on_when_run_again(clock: Clock, lost: bool) -> None:
    ended = 1
    while True:
        async with env(clock) as there:
            if lost:
                there.old.stop()

            if not await there.replace_until(ended, lost=lost):
                there.assert_replaced()
                break

            await there.replace(lost=lost)
            there.assert_replaced()
            if not lost:
                there.assert_former_is_empty()

        ended += 1

    assert ended > 40


async def test_a_lost_cluster_that_answers_is_no_lost_one(clock: Clock) -> None:
    async with env(clock) as there:
        with pytest.raises(ConfigError, match="leave --lost out"):
            await there.replace(lost=True)

        assert there.led_to() is there.old
        assert len(there.source.all(kinds.PODS)) == 3


async def test_pods_of_a_cluster_that_does_not_answer_are_not_evicted_in_vain(
    clock: Clock,
) -> None:
    async with env(clock) as there:
        there.old.stop()
        with pytest.raises(ConfigError, match="pass --lost"):
            await there.replace()

        assert there.source.count("create", kinds.PODS, "eviction") == 0


async def test_a_disruption_budget_holds_up_the_switch(clock: Clock) -> None:
    async with env(clock) as there:
        refusal = TooManyRequests(429, "TooManyRequests", "Cannot evict pod")
        held = there.source.fail(refusal, kind=kinds.PODS, subresource="eviction", times=None)
        replacing = asyncio.create_task(there.replace())
        await asyncio.sleep(60)
        assert held.met > 9
        assert there.led_to() is there.old
        held.clear()
        await replacing
        there.assert_replaced()


async def test_a_cluster_that_is_not_recognized_leaves_the_node_cordoned(clock: Clock) -> None:
    async with env(clock) as there:
        there.is_blind = True
        with pytest.raises(ConfigError, match=r"timed out.*run the same again"):
            await there.replace()

        node = there.source.find(kinds.NODES, NODE) or {}
        assert objects.spec(node)["unschedulable"] is True


async def test_a_refusal_is_an_answer_and_silence_is_none(clock: Clock) -> None:
    async with env(clock) as there:
        client, target = there.source.client(), {"metadata": {"name": "gpu"}}
        assert (await former.ask(client, target, there.former)).uid == there.uid(there.old)
        there.old.fail(Unreachable("cut"), times=1)
        silent = await former.ask(client, target, there.former)
        assert (silent.answers, silent.why) == (False, "cut")


async def test_evictions_have_a_rate(clock: Clock) -> None:
    async with env(clock) as there:
        client, began = there.source.client(), clock.monotonic()
        await drains.drain(
            client, "gpu", "team", DrainRules(), grace=None, limit=None, per_minute=6, dry_run=False
        )
        assert clock.monotonic() - began == pytest.approx(20, abs=1)


async def test_a_pod_that_a_namesake_replaced_while_it_waited_is_gone(clock: Clock) -> None:
    """With a rate, StatefulSets have the time to make the next one."""
    async with env(clock) as there:

        def replace_last(_request: APIRequest) -> bool:
            if there.source.count("create", kinds.PODS, "eviction") == 1:
                there.source.remove(kinds.PODS, "web-2", "team")
                there.source.add(kinds.PODS, {"metadata": {"namespace": "team", "name": "web-2"}})

            return False

        there.source.fail(None, kind=kinds.PODS, subresource="eviction", when=replace_last)
        client, rules = there.source.client(), DrainRules()
        await drains.drain(
            client, "gpu", "team", rules, grace=None, limit=60, per_minute=6, dry_run=False
        )
        assert [objects.name(pod) for pod in there.source.all(kinds.PODS)] == ["web-2"]
