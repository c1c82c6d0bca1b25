"""Which chaperons any link of their source may delete, and which none but their Target's."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, objects
from vnode.api.errors import NotFound
from vnode.api.identity import Identity, parent_key
from vnode.kube.store import Store
from vnode.pods import orphans
from vnode.pods.orphans import Parent
from vnode.runtime.links import OTHERS_INDEX, Health, Link, Links, TargetKey

CLUSTERS = st.sampled_from(["", "a", "b"])
SENDERS = st.sampled_from([None, "", "a", "b"])


def pod(node=None, *, uid="u1", ending=False):
    metadata = {"uid": uid, **({"deletionTimestamp": "now"} if ending else {})}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


@pytest.mark.parametrize(
    ("owner", "parent"),
    [
        (None, Parent.GONE),
        (pod("here", uid="u2"), Parent.GONE),
        (pod(), Parent.PENDING),
        (pod("here"), Parent.BOUND),
        (pod("here", ending=True), Parent.BOUND),
        (pod("there"), Parent.ELSEWHERE),
        (pod(ending=True), Parent.ELSEWHERE),
    ],
)
def test_what_became_of_its_pod(owner, parent):
    chaperon = {"metadata": {"labels": {keys.PARENT_UID: "u1"}}}
    assert orphans.parent_of(chaperon, owner, "here") is parent


@pytest.mark.parametrize(
    ("parent", "here", "sender", "useless"),
    [
        (Parent.GONE, "", "", True),
        (Parent.ELSEWHERE, "a", "a", True),
        (Parent.PENDING, "a", None, True),
        (Parent.BOUND, "a", None, False),
        (Parent.BOUND, "a", "b", True),
        (Parent.PENDING, "a", "b", True),
        (Parent.BOUND, "a", "a", False),
        (Parent.BOUND, "a", "", False),
        (Parent.BOUND, "", "b", False),
    ],
)
def test_what_is_of_no_use(parent, here, sender, useless):
    assert orphans.is_of_no_use(parent, here, sender) is useless


@given(here=CLUSTERS, sender=SENDERS)
def test_the_delegate_of_a_bound_pod_goes_only_where_its_target_is_known_to_be_another(
    here, sender
):
    known_to_differ = bool(here and sender and here != sender)
    assert orphans.is_of_no_use(Parent.BOUND, here, sender) is known_to_differ


@given(here=CLUSTERS, sender=SENDERS, parent=st.sampled_from(Parent))
def test_to_know_less_never_makes_a_chaperon_useless(here, sender, parent):
    if not orphans.is_of_no_use(parent, here, sender):
        assert not orphans.is_of_no_use(parent, "", sender)
        assert sender is None or not orphans.is_of_no_use(parent, here, "")


US = Identity("c1", "us")
OTHER, GPU = TargetKey("ns", "other"), TargetKey("ns", "gpu")


class Pods:
    """The source's API server: the pods that there are, by key."""

    def __init__(self, **pods):
        self.pods, self.asked = pods, []

    async def get(self, _kind, name, _namespace):
        self.asked.append(name)
        if name not in self.pods:
            raise NotFound(404, "NotFound", name)

        return self.pods[name]


class There:
    """A target's API server, which notes what is deleted."""

    def __init__(self):
        self.deleted = asyncio.Queue()

    async def discard(self, _kind, chaperon):
        self.deleted.put_nowait(objects.name(chaperon))


class Stored:
    """An informer that has listed what it is given."""

    def __init__(self, indexes=None):
        self.store, self.synced, self.handlers = Store(indexes), asyncio.Event(), []
        self.synced.set()

    def subscribe(self, handler):
        self.handlers.append(handler)

    def put(self, obj):
        old = self.store.put(obj)
        for handler in self.handlers:
            handler(old, obj)


def sent(name, by=GPU):
    """A chaperon of the pod of that name, whose UID is its name."""
    notes = {
        keys.TARGET: str(by),
        keys.PARENT_CLUSTER_UID: US.uid,
        keys.PARENT_NAMESPACE: "ns",
        keys.PARENT_NAME: name,
    }
    labels = {keys.PARENT_UID: name}
    metadata = {"name": name, "namespace": "ns", "annotations": notes, "labels": labels}
    return {"metadata": metadata}


def link_to(cluster, target=OTHER):
    """A link to that cluster; it sees what other Targets sent there."""

    def others(chaperon):
        return () if target.sent(chaperon) else (parent_key(chaperon),)

    found = Link(
        target,
        There(),
        chaperons=Stored({OTHERS_INDEX: others}),
        summaries=Stored(),
        health=Health(True, "Connected", "", None),
    )
    found.recognized_uid = cluster
    return found


@asynccontextmanager
async def collecting(pods, clusters, *links):
    """An orphan controller at work; `clusters` are those of the Targets."""
    known, targets = Links(), Stored()
    for link in links:
        known.add(link)

    controller = orphans.OrphanController(pods, Stored(), known, [targets], clusters.get)
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(5):
            yield targets
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_whatever_link_reaches_it_collects_what_its_target_left_behind():
    link, pods = link_to("a"), Pods()
    async with collecting(pods, {OTHER: "a"}, link):
        link.chaperons.put(sent("web"))
        assert await link.client.deleted.get() == "web"


async def test_the_api_server_has_the_last_word_on_a_pod():
    """The first is not in our store, but there; the second, which is not, shows that it stays."""
    node = GPU.node_name
    pods = Pods(kept={"metadata": {"uid": "kept"}, "spec": {"nodeName": node}})
    link = link_to("a")
    async with collecting(pods, {OTHER: "a", GPU: ""}, link):
        link.chaperons.put(sent("kept"))
        link.chaperons.put(sent("gone"))
        assert await link.client.deleted.get() == "gone"
        assert pods.asked == ["kept", "gone"]
        assert link.client.deleted.empty()


async def test_what_a_link_of_its_own_reaches_is_left_to_that():
    own, link, pods = link_to("a", GPU), link_to("a"), Pods()
    async with collecting(pods, {OTHER: "a", GPU: "a"}, own, link):
        link.chaperons.put(sent("own"))
        link.chaperons.put(sent("left", by=TargetKey("ns", "former")))
        assert await link.client.deleted.get() == "left"
        assert pods.asked == ["left"]


async def test_a_target_that_comes_to_be_another_cluster_leaves_orphans():
    pod = {"metadata": {"uid": "web"}, "spec": {"nodeName": GPU.node_name}}
    link, clusters = link_to("a"), {OTHER: "a", GPU: "a"}
    async with collecting(Pods(web=pod), clusters, link) as targets:
        link.chaperons.put(sent("web"))
        link.chaperons.put(sent("gone"))
        assert await link.client.deleted.get() == "gone"
        clusters[GPU] = "b"
        targets.put({"metadata": {"namespace": "ns", "name": "gpu"}})
        deleted = {await link.client.deleted.get(), await link.client.deleted.get()}
        assert "web" in deleted
