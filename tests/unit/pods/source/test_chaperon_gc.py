"""Which chaperons are deleted in their targets, and which are spared until that is certain."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.scheduling import costs
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import Denied, ServerError
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.pods.source.chaperon_gc import ChaperonGC
from vnode.runtime.link import MOST_ALIKE
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

US = Identity("c1", "us")
GPU, CPU = TargetKey("ns", "gpu"), TargetKey("", "cpu")


class Clusters:
    """A source and its two targets; `known` has the proxy pods that its agent knows, by key."""

    def __init__(self, clock):
        self.clock = clock
        self.source = APIServer("c1", clock)
        self.gpu, self.cpu = (APIServer(name, clock) for name in ("gpu", "cpu"))
        self.known = {}
        self.links = Links()
        for server, target in ((self.gpu, GPU), (self.cpu, CPU)):
            self.links.add(links.link_to(server, target, US, clock))

        self.released = []
        self.gc = ChaperonGC(
            *(self.source.client(), self.links, self.known.get, clock, self.released.append)
        )

    def add_pod(self, name="web", *, node=None, waits=None, ending=False, known=True):
        """Store a proxy pod, whose UID is its name."""
        metadata = {"name": name, "namespace": "ns", "uid": name}
        if ending:
            metadata |= {"deletionTimestamp": "now", "finalizers": ["example.com/hold"]}

        if waits:
            metadata["annotations"] = {keys.PLACEHOLDERS: waits}

        spec = {"nodeName": node} if node else {}
        pod = self.source.add(kinds.PODS, {"metadata": metadata, "spec": spec})
        if known:
            self.known[objects.key(pod)] = pod

        return pod

    def send(self, server, parent="web", *, uid=None, **metadata):
        """Store the chaperon of the proxy pod `parent` in a target."""
        annotations = {
            keys.PARENT_CLUSTER_UID: US.uid,
            keys.PARENT_NAMESPACE: "ns",
            keys.PARENT_NAME: parent,
            keys.TARGET: str(GPU if server is self.gpu else CPU),
        }
        labels = {keys.PARENT_UID: uid or parent, keys.PARENT_CLUSTER_NAME: US.name}
        metadata |= {"namespace": "ns", "annotations": annotations, "labels": labels}
        metadata.setdefault("name", names.chaperon(parent, uid or parent))
        return server.add(kinds.POD_CHAPERONS, {"metadata": metadata})

    @asynccontextmanager
    async def collecting(self):
        """Have chaperons deleted; all that are there are looked at once."""
        async with links.connected(*self.links), background.running(self.gc.run()):
            for link in self.links:
                link.chaperons.subscribe(self._on_chaperon(link))

            await asyncio.sleep(1)
            yield

    def _on_chaperon(self, link):
        def look(_old, new):
            if new is not None:
                self.gc.on_chaperon(link, new)

        return look

    def see(self, name="web"):
        """Have the agent hear of a proxy pod."""
        self.gc.on_pod(f"ns/{name}")


def left(server):
    """List the names of the pods that have chaperons in a target."""
    return [objects.annotations(c)[keys.PARENT_NAME] for c in server.all(kinds.POD_CHAPERONS)]


@pytest.fixture
async def clusters(clock):
    return Clusters(clock)


async def test_the_chaperons_of_a_pending_pod_are_all_of_use(clusters):
    clusters.add_pod()
    clusters.send(clusters.gpu)
    clusters.send(clusters.cpu)
    async with clusters.collecting():
        assert left(clusters.gpu) == left(clusters.cpu) == ["web"]


@pytest.mark.parametrize(("ending", "expected"), [(False, ["web"]), (True, [])])
async def test_a_placeholder_stays_until_its_pod_ends(clusters, ending, expected):
    clusters.add_pod(node=CPU.node_name, waits=GPU.node_name, ending=ending)
    clusters.send(clusters.gpu)
    clusters.send(clusters.cpu)
    async with clusters.collecting():
        assert left(clusters.gpu) == expected
        assert left(clusters.cpu) == ["web"]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (keys.PARENT_NAME, "victim/log?container=c"),
        (keys.PARENT_NAME, "../../kube-system/secrets/x"),
        (keys.PARENT_NAME, "../pods?watch=true&x=1"),
        (keys.PARENT_NAMESPACE, "../.."),
    ],
)
async def test_a_parent_that_is_a_path_is_not_asked_for(clusters, field, text):
    """As a hostile target may name one; whatever it deletes there, it could delete itself."""
    chaperon = clusters.send(clusters.gpu)
    annotations = objects.annotations(chaperon) | {field: text}
    metadata = objects.metadata(chaperon) | {"annotations": annotations}
    clusters.gpu.add(kinds.POD_CHAPERONS, {"metadata": metadata})
    async with clusters.collecting():
        await asyncio.sleep(60)
        assert len(clusters.gpu.all(kinds.POD_CHAPERONS)) == 1
        assert not clusters.source.requests


async def test_a_decision_deletes_the_losers(clusters):
    clusters.add_pod()
    clusters.send(clusters.gpu)
    clusters.send(clusters.cpu)
    async with clusters.collecting():
        clusters.add_pod(node=GPU.node_name)
        clusters.see()
        await asyncio.sleep(1)
        assert left(clusters.gpu) == ["web"]
        assert left(clusters.cpu) == []
        assert clusters.source.count("get") == 0  # the binding is known: nobody need be asked


async def test_a_pending_pod_that_ends_loses_all_of_them(clusters):
    clusters.add_pod(ending=True)
    clusters.send(clusters.gpu)
    clusters.send(clusters.cpu)
    async with clusters.collecting():
        assert left(clusters.gpu) == left(clusters.cpu) == []


async def test_a_bound_pod_that_ends_keeps_its_own(clusters):
    """That one reports until the delegate is gone."""
    clusters.add_pod(node=GPU.node_name, ending=True)
    clusters.send(clusters.gpu)
    async with clusters.collecting():
        assert left(clusters.gpu) == ["web"]


async def test_the_chaperon_of_a_pod_that_is_gone_is_deleted(clusters):
    clusters.send(clusters.gpu)
    async with clusters.collecting():
        assert left(clusters.gpu) == []


async def test_a_chaperon_that_is_not_called_as_ours_is_left_to_who_made_it(clusters):
    clusters.send(clusters.gpu, name="web-other")
    async with clusters.collecting():
        await asyncio.sleep(60)
        assert left(clusters.gpu) == ["web"]
        assert not clusters.source.requests


async def test_the_chaperon_of_an_earlier_pod_of_the_name_is_deleted(clusters):
    clusters.add_pod(node=GPU.node_name)
    clusters.send(clusters.gpu, uid="earlier")
    async with clusters.collecting():
        assert left(clusters.gpu) == []


async def test_of_many_chaperons_that_name_one_pod_all_are_deleted_by_and_by(clusters):
    for number in range(2 * MOST_ALIKE):
        clusters.send(clusters.gpu, uid=f"u{number}")

    async with clusters.collecting():
        await asyncio.sleep(90)
        assert left(clusters.gpu) == []


async def test_of_many_chaperons_that_name_one_pod_few_are_looked_at(clusters):
    """A target may say of all chaperons that they are that pod's, and change each again."""
    link = clusters.links.get(GPU.node_name)
    clusters.add_pod(node=CPU.node_name)
    for number in range(20 * MOST_ALIKE):
        link.chaperons.store.put(clusters.send(clusters.gpu, uid=f"u{number}"))
        if number == MOST_ALIKE:
            few = costs.bytecodes(clusters.see)

    assert costs.bytecodes(clusters.see) < 1.5 * few


async def test_the_chaperon_of_a_pod_that_is_only_not_known_stays(clusters):
    clusters.add_pod(node=GPU.node_name, known=False)
    clusters.send(clusters.gpu)
    async with clusters.collecting():
        assert left(clusters.gpu) == ["web"]
        assert clusters.source.count("get", kinds.PODS) == 1


async def test_a_source_that_cannot_say_whether_a_pod_is_there_deletes_nothing(clusters):
    error = ServerError(500, "", "no")
    fault = clusters.source.fail(error, verb="get", kind=kinds.PODS, times=None)
    clusters.send(clusters.gpu)
    async with clusters.collecting():
        await asyncio.sleep(30)
        assert left(clusters.gpu) == ["web"]
        fault.clear()
        await asyncio.sleep(30)
        assert left(clusters.gpu) == []


async def test_a_chaperon_that_ends_is_not_deleted_again(clusters):
    clusters.send(clusters.gpu, finalizers=[keys.DELEGATE_FINALIZER])
    async with clusters.collecting():
        clusters.see()
        await asyncio.sleep(60)
        assert left(clusters.gpu) == ["web"]
        assert clusters.gpu.count("delete") == 1


async def test_a_later_chaperon_of_the_name_is_not_deleted_for_it(clusters):
    """The informer has the earlier one still, whose pod is gone."""
    clusters.source.fail(None, verb="get", kind=kinds.PODS, delay=5)
    clusters.send(clusters.gpu)
    async with clusters.collecting():
        clusters.gpu.silence_watches()
        clusters.gpu.remove(kinds.POD_CHAPERONS, names.chaperon("web", "web"), "ns")
        clusters.send(clusters.gpu)
        await asyncio.sleep(10)
        assert clusters.gpu.count("delete") == 1
        assert left(clusters.gpu) == ["web"]


@pytest.mark.parametrize(
    "error", [Denied(403, "Forbidden", "no"), ServerError(500, "", "no")], ids=["denied", "error"]
)
async def test_a_target_that_refuses_is_asked_again_later(clusters, error):
    clusters.gpu.fail(error, verb="delete")
    clusters.send(clusters.gpu)
    async with clusters.collecting():
        await asyncio.sleep(27)
        assert clusters.gpu.count("delete") == 1
        await asyncio.sleep(5)
        assert left(clusters.gpu) == []


async def test_a_target_that_does_not_answer_is_asked_nothing(clusters):
    link = clusters.links.get(GPU.node_name)
    link.set_health(LinkHealth(False, "Unreachable", "it does not answer", clusters.clock.now()))
    clusters.send(clusters.gpu)
    async with clusters.collecting():
        await asyncio.sleep(60)
        assert clusters.gpu.count("delete") == clusters.source.count("get") == 0
        links.set_healthy(link, True, clusters.clock)
        clusters.see()  # as the controller of proxies does then
        await asyncio.sleep(1)
        assert left(clusters.gpu) == []


async def test_a_target_that_hangs_holds_up_no_other(clusters):
    for number in range(20):
        clusters.send(clusters.gpu, f"web-{number}")

    clusters.gpu.fail(None, verb="delete", times=None, delay=float("inf"))
    clusters.send(clusters.cpu)
    async with clusters.collecting():
        assert left(clusters.cpu) == []
        assert clusters.gpu.count("delete") == 8


async def test_a_link_that_goes_is_asked_nothing(clusters, caplog):
    async with clusters.collecting():
        link = clusters.links.get(GPU.node_name)
        link.chaperons.subscribe(lambda _old, _new: clusters.links.remove(link))
        clusters.send(clusters.gpu)
        await asyncio.sleep(1)
        assert clusters.gpu.count("delete") == 0
        assert "failed" not in caplog.text


async def test_of_a_target_without_vnode_it_is_told_whose_delegate_may_outlive_the_chaperon(
    clusters,
):
    metadata = {"name": keys.SUMMARY_NAME}
    clusters.cpu.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata})
    for server in (clusters.gpu, clusters.cpu):
        clusters.send(server, finalizers=["example.com/kept", keys.DELEGATE_FINALIZER])

    async with clusters.collecting():
        assert clusters.released == ["ns/web"]
        [ours] = clusters.gpu.all(kinds.POD_CHAPERONS)
        [theirs] = clusters.cpu.all(kinds.POD_CHAPERONS)
        assert objects.finalizers(ours) == ["example.com/kept", keys.DELEGATE_FINALIZER]
        assert objects.finalizers(theirs) == ["example.com/kept"]


async def test_what_a_former_target_sent_there_is_let_go_of_too(clusters):
    clusters.cpu.add(kinds.CLUSTER_SUMMARIES, {"metadata": {"name": keys.SUMMARY_NAME}})
    sent = clusters.send(clusters.cpu, finalizers=[keys.DELEGATE_FINALIZER])
    name = objects.name(sent)

    def send_by_another(chaperon):
        chaperon["metadata"]["annotations"][keys.TARGET] = "ns/former"

    clusters.cpu.change(kinds.POD_CHAPERONS, name, "ns", send_by_another)
    async with clusters.collecting():
        assert left(clusters.cpu) == ["web"]
        await clusters.cpu.client().delete(kinds.POD_CHAPERONS, name, "ns")
        await asyncio.sleep(1)
        assert left(clusters.cpu) == []
