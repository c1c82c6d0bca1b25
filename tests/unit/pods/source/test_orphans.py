"""Which chaperons any link of their source may delete, and which none but their Target's."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import background, computing
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from vnode.api import keys, kinds, names, objects
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kube.informer import Informer
from vnode.kube.namespace_scope import EVERYTHING, NamespaceScope
from vnode.pods.source import orphans
from vnode.pods.source.orphans import ParentState
from vnode.runtime.link import MOST_ALIKE
from vnode.runtime.links import Links

CLUSTERS = st.sampled_from(["", "a", "b"])
SENDERS = st.sampled_from([None, "", "a", "b"])


def pod(node=None, *, uid="u1", ending=False, waits=None):
    metadata = {"uid": uid, **({"deletionTimestamp": "now"} if ending else {})}
    if waits:
        metadata["annotations"] = {keys.PLACEHOLDERS: waits}

    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


@pytest.mark.parametrize(
    ("owner", "parent"),
    [
        (None, ParentState.GONE),
        (pod("here", uid="u2"), ParentState.GONE),
        (pod(), ParentState.PENDING),
        (pod("here"), ParentState.BOUND),
        (pod("here", ending=True), ParentState.BOUND),
        (pod("there"), ParentState.ELSEWHERE),
        (pod(ending=True), ParentState.ELSEWHERE),
        (pod("there", waits="here,x"), ParentState.PENDING),
        (pod("there", waits="x"), ParentState.ELSEWHERE),
        (pod("there", waits="here", ending=True), ParentState.ELSEWHERE),
    ],
)
def test_what_became_of_its_pod(owner, parent):
    chaperon = {"metadata": {"labels": {keys.PARENT_UID: "u1"}}}
    assert orphans.parent_of(chaperon, owner, "here") is parent


@pytest.mark.parametrize(
    ("parent", "here", "sender", "useless"),
    [
        (ParentState.GONE, "", "", True),
        (ParentState.ELSEWHERE, "a", "a", True),
        (ParentState.PENDING, "a", None, True),
        (ParentState.BOUND, "a", None, False),
        (ParentState.BOUND, "a", "b", True),
        (ParentState.PENDING, "a", "b", True),
        (ParentState.BOUND, "a", "a", False),
        (ParentState.BOUND, "a", "", False),
        (ParentState.BOUND, "", "b", False),
    ],
)
def test_what_is_of_no_use(parent, here, sender, useless):
    assert orphans.is_of_no_use(parent, here, sender) is useless


@given(here=CLUSTERS, sender=SENDERS)
def test_the_delegate_of_a_bound_pod_goes_only_where_its_target_is_known_to_be_another(
    here, sender
):
    known_to_differ = bool(here and sender and here != sender)
    assert orphans.is_of_no_use(ParentState.BOUND, here, sender) is known_to_differ


@given(here=CLUSTERS, sender=SENDERS, parent=st.sampled_from(ParentState))
def test_to_know_less_never_makes_a_chaperon_useless(here, sender, parent):
    if not orphans.is_of_no_use(parent, here, sender):
        assert not orphans.is_of_no_use(parent, "", sender)
        assert sender is None or not orphans.is_of_no_use(parent, here, "")


US = Identity("c1", "us")
OTHER, GPU = TargetKey("ns", "other"), TargetKey("ns", "gpu")


def sent(name, by=GPU):
    """Return the chaperon of the pod of that name, whose UID is its name."""
    annotations = {
        keys.TARGET: str(by),
        keys.PARENT_CLUSTER_UID: US.uid,
        keys.PARENT_NAMESPACE: "ns",
        keys.PARENT_NAME: name,
    }
    labels = {keys.PARENT_UID: name, keys.PARENT_CLUSTER_NAME: US.name}
    metadata = {"namespace": "ns", "annotations": annotations, "labels": labels}
    return {"metadata": {"name": names.chaperon(name, name), **metadata}}


class OrphansEnvironment:
    """A source that has Targets, and the cluster "a" that its links lead to.

    The source's informer of proxies has listed none: what pods there are only its API server knows.
    """

    def __init__(self, clock):
        self._clock = clock
        self.source, self.cluster = APIServer("c1", clock), APIServer("a", clock)
        client = self.source.client()
        self.proxies, self.targets = Informer(client, kinds.PODS), Informer(client, kinds.TARGETS)
        self.proxies.synced.set()
        self.clusters = {OTHER: "a"}  # of the Targets, as far as known
        self.links = Links()
        self.scope = EVERYTHING

    def link(self, target=OTHER):
        link = links.link_to(self.cluster, target, US, self._clock, cluster_uid="a")
        self.links.add(link)
        return link

    def pod(self, name, node):
        metadata = {"name": name, "namespace": "ns", "uid": name}
        self.source.add(kinds.PODS, {"metadata": metadata, "spec": {"nodeName": node}})

    def chaperon(self, name, **options):
        self.cluster.add(kinds.POD_CHAPERONS, sent(name, **options))

    async def until_left(self, *parents):
        """Wait until the chaperons of no other pods are there."""
        await self.cluster.until(lambda: self.left() == set(parents), 5)

    def left(self):
        """Return the names of the pods that have chaperons."""
        return {
            objects.annotations(chaperon)[keys.PARENT_NAME]
            for chaperon in self.cluster.all(kinds.POD_CHAPERONS)
        }

    @property
    def asked(self):
        return [request.name for request in self.source.received("get", kinds.PODS)]

    @asynccontextmanager
    async def collecting(self):
        """Run an orphan controller; inside, it is at work."""
        client = self.source.client()
        client.scope = self.scope
        controller = orphans.OrphanController(
            *(client, self.proxies, self.links, [self.targets], self.clusters.get),
            WorkingClock(self._clock),
        )
        async with (
            links.connected(*self.links),
            links.following(self.targets),
            background.running(controller.run()),
        ):
            yield controller


@pytest.fixture
async def env(clock):
    return OrphansEnvironment(clock)


@pytest.mark.looptime
async def test_whatever_link_reaches_it_collects_what_its_target_left_behind(env):
    env.link()
    async with env.collecting():
        env.chaperon("web")
        await env.until_left()


@pytest.mark.looptime
async def test_of_many_that_name_one_pod_some_are_looked_at_at_a_time(env):
    env.link()
    for number in range(2 * MOST_ALIKE):
        chaperon = sent("web")
        metadata = {**chaperon["metadata"], "name": names.chaperon("web", f"u{number}")}
        metadata["labels"] = {**metadata["labels"], keys.PARENT_UID: f"u{number}"}
        env.cluster.add(kinds.POD_CHAPERONS, {"metadata": metadata})

    async with env.collecting():
        await asyncio.sleep(5)
        assert len(env.cluster.all(kinds.POD_CHAPERONS)) == MOST_ALIKE
        await env.cluster.until(lambda: not env.left(), 90)


@pytest.mark.looptime
async def test_the_api_server_has_the_last_word_on_a_pod(env):
    """The first is not in our store, but there; the second, which is not, shows that it stays."""
    env.clusters[GPU] = ""
    env.pod("kept", GPU.node_name)
    env.link()
    async with env.collecting():
        env.chaperon("kept")
        env.chaperon("gone")
        await env.until_left("kept")
        assert env.asked == ["kept", "gone"]
        assert env.cluster.count("delete") == 1


@pytest.mark.looptime
async def test_what_a_user_changes_of_a_target_has_no_pods_asked_for(env):
    env.clusters[GPU] = ""
    env.pod("kept", GPU.node_name)
    env.source.add(kinds.TARGETS, {"metadata": {"namespace": "ns", "name": "gpu"}, "status": {}})
    env.link()
    env.chaperon("kept")
    async with env.collecting():
        await asyncio.sleep(5)
        before = len(env.asked)
        for number in range(5):
            mark = {"annotations": {"n": str(number)}}
            env.source.change(kinds.TARGETS, "gpu", "ns", lambda t, m=mark: t["metadata"].update(m))
            await asyncio.sleep(1)

        assert len(env.asked) == before
        env.source.change(kinds.TARGETS, "gpu", "ns", lambda t: t["status"].update(clusterUID="a"))
        await asyncio.sleep(1)
        assert len(env.asked) == before + 1


@pytest.mark.looptime
async def test_all_that_a_target_has_of_others_is_looked_at_in_steps(env, monkeypatch):
    """A target may be well and not well in turn, and a tenant may delete Targets all the time."""
    link, woken = env.link(), []
    others = [f"ns/p{number}" for number in range(500_000)]
    async with env.collecting() as controller:
        await asyncio.sleep(1)
        monkeypatch.setattr(link.chaperons.store, "values_of", lambda _index: others)
        monkeypatch.setattr(controller._controller, "add", woken.append)
        with computing.steps() as steps:
            asyncio.get_running_loop().call_soon(link.report, "a task", OSError())
            await asyncio.sleep(1)

    assert [place.pod for place in woken] == others
    assert max(steps) < 0.02


@pytest.mark.looptime
async def test_nobody_asks_for_pods_of_namespaces_that_may_not_be_read(env):
    env.scope = NamespaceScope(["another"])
    env.link()
    env.chaperon("gone")
    async with env.collecting():
        await asyncio.sleep(60)
        assert env.left() == {"gone"}
        assert env.asked == []


async def test_what_a_link_of_its_own_reaches_is_left_to_that(env):
    env.clusters[GPU] = "a"
    env.link(GPU)
    env.link()
    async with env.collecting():
        env.chaperon("own")
        env.chaperon("left", by=TargetKey("ns", "former"))
        await env.until_left("own")
        assert set(env.asked) == {"left"}  # by both links, maybe


@pytest.mark.looptime
async def test_a_target_that_comes_to_be_another_cluster_leaves_orphans(env):
    env.clusters[GPU] = "a"
    env.pod("web", GPU.node_name)
    env.link()
    async with env.collecting():
        env.chaperon("web")
        env.chaperon("gone")
        await env.until_left("web")
        env.clusters[GPU] = "b"
        env.source.add(kinds.TARGETS, {"metadata": {"namespace": "ns", "name": "gpu"}})
        await env.until_left()


@pytest.mark.looptime
@pytest.mark.parametrize("forged", [{"name": "planted"}, {"namespace": "mine"}], ids=str)
async def test_what_no_agent_of_ours_made_is_left_to_who_made_it(env, forged):
    """Whoever may make chaperons in one namespace of a target can write our UID on them."""
    env.cluster.add(kinds.NAMESPACES, {"metadata": {"name": "mine"}})
    env.link(TargetKey("", "all"))
    async with env.collecting():
        planted = sent("planted")
        planted["metadata"] |= forged
        env.cluster.add(kinds.POD_CHAPERONS, planted)
        env.chaperon("web")
        await env.until_left("planted")
        await asyncio.sleep(60)
        assert env.left() == {"planted"}
        assert env.asked == ["web"]
