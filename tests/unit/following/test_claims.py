from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.errors import ConfigError, Denied
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.following import claims, copies
from vnode.following.family import FamilyContext
from vnode.following.namespaces import Namespaces
from vnode.following.reference_index import Key, Need, ReferenceIndex
from vnode.following.references import Ref
from vnode.kube.namespace_scope import EVERYTHING
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise
from vnode.runtime.target_options import TargetOptions

US = Identity("c1", "uid-1")


def claim(storage_class, **spec):
    annotations = {"volume.kubernetes.io/selected-node": "n", "note": "x"}
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": "pv", **spec}
    if storage_class is not None:
        spec["storageClassName"] = storage_class

    metadata = {"name": "data", "namespace": "ns", "uid": "u", "annotations": annotations}
    return {"metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("own", "classes", "there"),
    [
        ("fast", {"fast": "premium"}, "premium"),
        ("fast", {"slow": "cheap"}, "fast"),
        ("fast", {"fast": ""}, None),
        (None, {"": "premium"}, "premium"),
        (None, {}, None),
    ],
)
def test_the_storage_class_is_mapped(own, classes, there):
    copy = claims.claim(claim(own), US, classes)
    assert copy["spec"].get("storageClassName") == there


def test_a_copy_is_bound_to_no_volume_of_the_source():
    copy = claims.claim(claim("fast", dataSource={"name": "snapshot"}), US, {})
    assert copy["spec"] == {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    assert copy["metadata"]["annotations"].keys() & {"note"}
    assert "volume.kubernetes.io/selected-node" not in copy["metadata"]["annotations"]
    assert US.made(copy)


LABELLED = claim("fast") | {"metadata": {**claim("fast")["metadata"], "labels": {"a": "1"}}}


class Serving:
    """A link to a target that serves claims."""

    def __init__(self, node_name):
        self.node_name, self.target, self.is_self = node_name, TargetKey("", node_name), False
        self.options = TargetOptions(storage_classes={})


async def read(_kind, _name, _namespace):
    return LABELLED


@pytest.fixture
def family(clock):
    local, woken = SimpleNamespace(name="c1", scope=EVERYTHING, get=read), []
    context = FamilyContext(local, Links(), US, lambda _key: None, woken.append, None, None, None)
    family = claims.Claims(context, ReferenceIndex(context.wake, clock))
    family.woken = woken
    return family


async def test_copies_are_looked_at_once_it_is_known_which_claims_there_are(family, monkeypatch):
    """One whose original went while no agent was there would stay for good."""
    listed = asyncio.Event()

    async def run():
        await listed.wait()
        family._informer.synced.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(family._informer, "run", run)
    copy = Key("n1", Ref(kinds.CLAIMS, "ns", "data"))
    link = Serving("n1")
    async with supervise() as tasks:
        await family.open(tasks)
        family._links.add(link)
        await asyncio.sleep(0)
        assert family.need(copy, link) is Need.TOLERATED
        assert family.woken == []
        listed.set()
        for _ in range(10):
            await asyncio.sleep(0)

        assert family.need(copy, link) is Need.NONE
        assert family.woken == [kinds.CLAIMS]


def test_a_change_is_looked_at_where_the_claim_is_used_and_where_it_has_a_copy(clock):
    """Thousands of targets may serve claims; the volume of a copy outlasts the pods."""
    local, woken, links = SimpleNamespace(name="c1", scope=EVERYTHING), [], Links()
    for node in ("uses", "has-copy", "neither"):
        links.add(Serving(node))

    there = {"uses": None, "has-copy": claim("fast"), "neither": None}
    context = FamilyContext(local, links, US, woken.append, None, lambda _ref: there, clock, None)
    references = ReferenceIndex(lambda _key: None, clock)
    family = claims.Claims(context, references)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    metadata = {"name": "p", "namespace": "ns", "uid": "p"}
    references.on_pod(
        None, {"metadata": metadata, "spec": {"nodeName": "uses", "volumes": [volume]}}
    )
    family._on_claim(None, claim("fast"))
    assert [key.node for key in woken] == ["uses", "has-copy"]


async def test_only_labels_of_a_claim_change(family):
    family._informer._put(family._trim(LABELLED))
    present = family.trim(claims.claim(claim("fast"), US, {}))
    present["spec"] |= {"volumeName": "theirs", "storageClassName": "premium"}
    known = await family.original(Ref(kinds.CLAIMS, "ns", "data"), SimpleNamespace(), {})
    assert known.marks != copies.marks(present)
    link = Serving("n1")
    built = await family.build(Ref(kinds.CLAIMS, "ns", "data"), known, link)
    after = family.update(built, present)
    assert after["spec"] == present["spec"]
    assert after["metadata"]["labels"]["a"] == "1"
    assert copies.marks(after) == known.marks


async def test_a_claim_of_which_nothing_is_known_is_not_judged(family):
    known = await family.original(Ref(kinds.CLAIMS, "ns", "data"), SimpleNamespace(), {})
    assert known.marks is None


async def test_a_claim_that_was_made_again_does_not_take_the_volume_of_the_earlier_one(family):
    copy = family.trim(claims.claim(claim("fast"), US, {}))
    ref = Ref(kinds.CLAIMS, "ns", "data")
    assert family.replaces(
        copy, await family.original(ref, SimpleNamespace(), {})
    )  # nothing is known yet
    family._informer._put(family._trim(LABELLED))
    assert family.replaces(copy, await family.original(ref, SimpleNamespace(), {}))
    again = {**LABELLED["metadata"], "uid": "again", "resourceVersion": "2"}
    family._informer._put(family._trim({**LABELLED, "metadata": again}))
    assert not family.replaces(copy, await family.original(ref, SimpleNamespace(), {}))


ASKING = TargetOptions(create_namespaces=True)


class Target:
    """A cluster behind a link; `made` are the namespaces that it was asked for."""

    def __init__(self, clock, namespace="", options=ASKING, labels=None):
        source = APIServer("c1", clock)
        for name in ("a", "b"):
            source.add(kinds.NAMESPACES, {"metadata": {"name": name, "labels": labels or {}}})

        self.namespaces = Namespaces(source.client(), US, clock)
        self.server = APIServer("c2", clock)
        self.link = links.link_to(
            self.server, TargetKey(namespace, "c2"), US, clock, options=options
        )

    @property
    def made(self):
        requests = self.server.received("create", kinds.NAMESPACES)
        return [objects.name(request.body) for request in requests]


@pytest.mark.looptime
async def test_a_namespace_is_made_once(clock):
    target = Target(clock)
    namespaces = target.namespaces
    await namespaces.ensure("a", target.link)
    await namespaces.ensure("a", target.link)
    await namespaces.ensure("b", target.link)
    assert target.made == ["a", "b"]
    await clock.sleep(61)
    await namespaces.ensure("a", target.link)
    assert target.made == ["a", "b", "a"]
    assert target.server.find(kinds.NAMESPACES, "b")


@pytest.mark.looptime
async def test_a_cluster_that_replaces_another_gets_its_namespaces_at_once(clock):
    target, other = Target(clock), Target(clock)
    await target.namespaces.ensure("a", target.link)
    await target.namespaces.ensure("a", other.link)
    assert other.made == ["a"]


@pytest.mark.looptime
async def test_a_namespace_that_is_there_is_left_alone(clock):
    target = Target(clock)
    there = target.server.add(kinds.NAMESPACES, {"metadata": {"name": "a"}})
    await target.namespaces.ensure("a", target.link)
    assert target.server.find(kinds.NAMESPACES, "a") == there
    assert clock.monotonic() == 0


@pytest.mark.looptime
@pytest.mark.parametrize("odd", [{"options": TargetOptions()}, {"namespace": "team"}])
async def test_no_namespace_is_made_unasked(clock, odd):
    target = Target(clock, **odd)
    await target.namespaces.ensure("a", target.link)
    assert target.made == []


@pytest.mark.looptime
async def test_a_target_that_does_not_allow_it_names_the_role(clock):
    target = Target(clock)
    target.server.fail(Denied(403, "Forbidden", "no"), kind=kinds.NAMESPACES)
    with pytest.raises(ConfigError, match="bind ClusterRole vnode-source-namespaces"):
        await target.namespaces.ensure("a", target.link)


SECURITY = "pod-security.kubernetes.io/"


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        ({"enforce": "restricted"}, {"enforce"}),
        ({"enforce": "baseline", "enforce-version": "v1.30"}, {"enforce", "enforce-version"}),
        ({"enforce": "privileged", "enforce-version": "v1.30", "warn": "baseline"}, {"warn"}),
        ({"enforce-version": "v1.30", "other": "restricted"}, set()),
        ({"enforce": "nonsense"}, set()),
    ],
)
async def test_a_namespace_is_made_no_less_strict_than_the_sources(clock, labels, taken):
    own = {f"{SECURITY}{key}": value for key, value in labels.items()}
    target = Target(clock, labels={**own, "team": "x"})
    await target.namespaces.ensure("a", target.link)
    made = objects.labels(target.server.find(kinds.NAMESPACES, "a"))
    assert {key for key in made if key.startswith(SECURITY)} == {SECURITY + key for key in taken}
    assert all(made[SECURITY + key] == labels[key] for key in taken)
    assert "team" not in made
