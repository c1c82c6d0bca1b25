from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from vnode.api import kinds
from vnode.api.errors import AlreadyExists, ConfigError, Denied
from vnode.api.identity import Identity
from vnode.following import claims, copies
from vnode.following.namespaces import Namespaces
from vnode.following.references import Ref
from vnode.following.users import Key, Need, Users
from vnode.runtime.links import Links, TargetKey, Wishes
from vnode.runtime.supervisor import supervise

US = Identity("c1", "uid-1")


def claim(storage_class, **spec):
    notes = {"volume.kubernetes.io/selected-node": "n", "note": "x"}
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": "pv", **spec}
    if storage_class is not None:
        spec["storageClassName"] = storage_class

    metadata = {"name": "data", "namespace": "ns", "uid": "u", "annotations": notes}
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


async def read(_kind, _name, _namespace):
    return LABELLED


@pytest.fixture
def family(clock):
    local, looked = SimpleNamespace(name="c1", get=read), []
    family = claims.Claims(local, Links(), US, Users(lambda _key: None, clock), looked.append)
    family.looked = looked
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
    link = Link(wishes=Wishes(storage_classes={}))
    async with supervise() as tasks:
        await family.open(tasks)
        family._links.add(link)
        await asyncio.sleep(0)
        assert family.need(copy, link) is Need.TOLERATED
        assert family.looked == []
        listed.set()
        for _ in range(10):
            await asyncio.sleep(0)

        assert family.need(copy, link) is Need.NONE
        assert family.looked == [kinds.CLAIMS]


async def test_only_labels_of_a_claim_change(family):
    family._informer._put(LABELLED)
    present = family.trim(claims.claim(claim("fast"), US, {}))
    present["spec"] |= {"volumeName": "theirs", "storageClassName": "premium"}
    known = await family.original(Ref(kinds.CLAIMS, "ns", "data"), sure=True)
    assert known.marks != copies.marks(present)
    link = Link(wishes=Wishes(storage_classes={}))
    built = await family.build(Ref(kinds.CLAIMS, "ns", "data"), known, link)
    after = family.update(built, present)
    assert after["spec"] == present["spec"]
    assert after["metadata"]["labels"]["a"] == "1"
    assert copies.marks(after) == known.marks


async def test_a_claim_of_which_nothing_is_known_is_not_judged(family):
    known = await family.original(Ref(kinds.CLAIMS, "ns", "data"), sure=True)
    assert known.marks is None


async def test_a_claim_that_was_made_again_does_not_take_the_volume_of_the_earlier_one(family):
    copy = family.trim(claims.claim(claim("fast"), US, {}))
    ref = Ref(kinds.CLAIMS, "ns", "data")
    assert family.replaces(copy, await family.original(ref, sure=True))  # nothing is known yet
    family._informer._put(LABELLED)
    assert family.replaces(copy, await family.original(ref, sure=True))
    again = {**LABELLED["metadata"], "uid": "again", "resourceVersion": "2"}
    family._informer._put({**LABELLED, "metadata": again})
    assert not family.replaces(copy, await family.original(ref, sure=True))


class Link:
    """A ClusterTarget that asks for namespaces."""

    def __init__(self, error=None, namespace="", wishes=None):
        self.made, self.error, self.is_self = [], error, False
        self.target, self.node_name = TargetKey(namespace, "c2"), "n1"
        self.wishes = wishes or Wishes(create_namespaces=True)
        self.client = SimpleNamespace(create=self.create)

    async def create(self, kind, body):
        assert kind is kinds.NAMESPACES
        self.made.append(body["metadata"]["name"])
        if self.error:
            raise self.error


@pytest.mark.looptime
async def test_a_namespace_is_made_once(clock):
    namespaces, link = Namespaces(US, clock), Link()
    await namespaces.ensure("a", link)
    await namespaces.ensure("a", link)
    await namespaces.ensure("b", link)
    assert link.made == ["a", "b"]
    await clock.sleep(61)
    await namespaces.ensure("a", link)
    assert link.made == ["a", "b", "a"]


@pytest.mark.looptime
async def test_a_namespace_that_is_there_is_left_alone(clock):
    link = Link(AlreadyExists(409, "AlreadyExists", "there"))
    await Namespaces(US, clock).ensure("a", link)
    assert clock.monotonic() == 0


@pytest.mark.looptime
@pytest.mark.parametrize("link", [Link(wishes=Wishes()), Link(namespace="team")])
async def test_no_namespace_is_made_unasked(clock, link):
    await Namespaces(US, clock).ensure("a", link)
    assert link.made == []


@pytest.mark.looptime
async def test_a_target_that_does_not_allow_it_names_the_role(clock):
    link = Link(Denied(403, "Forbidden", "no"))
    with pytest.raises(ConfigError, match="bind ClusterRole vnode-source-namespaces"):
        await Namespaces(US, clock).ensure("a", link)
