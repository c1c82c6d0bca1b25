from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from vnode.api import keys, kinds
from vnode.api.errors import AlreadyExists, ConfigError, Conflict, Denied, Invalid, Unreachable
from vnode.api.identity import Identity
from vnode.following import copies
from vnode.following.config_objects import ConfigObjects
from vnode.following.family import Original
from vnode.following.follower import GRACE, PATIENCE, Follower
from vnode.following.references import Ref
from vnode.following.there import There
from vnode.following.users import Key, Need
from vnode.following.writing import LOOK_AGAIN
from vnode.kube.store import Store
from vnode.runtime.links import Health, Links

pytestmark = pytest.mark.looptime

US = Identity("c1", "uid-1")
MAP = Ref(kinds.CONFIG_MAPS, "ns", "m")
WELL = Health(True, "Connected", "", datetime.now(UTC))


def content(text, **metadata):
    return {"metadata": {"name": "m", "namespace": "ns", **metadata}, "data": {"a": text}}


class Family(ConfigObjects):
    """ConfigMaps whose original, and need, are as the test says."""

    def __init__(self):
        self.needs, self.body = {}, content("now", uid="original", resourceVersion="5")
        self._identity = US
        self.pods = [{"kind": "Pod", "name": "p"}]

    def need(self, key, _link):
        return self.needs.get(key.node, Need.NONE)

    def users(self, _key):
        return iter(self.pods)

    async def open(self, group):
        pass

    async def original(self, _ref, *, sure):
        if self.body is None:
            return None

        marks = copies.marks(copies.content(self.body, US))
        return Original("original", "5", self.trim(self.body)["digest"], marks, self.body)


class Target:
    """A cluster that does what an API server would; `fail` has a method's next calls raise."""

    def __init__(self, node, family):
        self.calls, self.errors, self.objects, self.family = [], {}, {}, family
        self.admit = lambda body: body  # a mutating webhook
        self.store, self.synced, self.failure = Store(), asyncio.Event(), None
        self.synced.set()
        target, self.covered = SimpleNamespace(name=node, namespace=""), True
        self.link = SimpleNamespace(
            node_name=node, target=target, client=self, health=WELL, covers=lambda _: self.covered
        )

    def there(self):
        return There(self.link, {kinds.CONFIG_MAPS: self}, set())

    def fail(self, method, *errors):
        self.errors[method] = list(errors)

    def _called(self, method):
        self.calls.append(method)
        if self.errors.get(method):
            raise self.errors[method].pop(0)

    def put(self, body, uid="copy"):
        metadata = {**body["metadata"], "uid": uid, "resourceVersion": str(len(self.calls) + 10)}
        self.objects[uid] = self.admit({**body, "metadata": metadata})
        self.store.put(self.family.trim(self.objects[uid]))
        return self.objects[uid]

    def holds(self):
        return [obj["data"]["a"] for obj in self.objects.values()]

    async def create(self, _kind, body):
        self._called("create")
        return self.put(body)

    async def replace(self, _kind, body):
        self._called("replace")
        return self.put(body)

    async def get(self, _kind, _name, _namespace):
        self._called("get")
        return next(iter(self.objects.values()))

    async def discard(self, _kind, obj):
        self._called("discard")
        del self.objects[obj["metadata"]["uid"]]
        self.store.pop("ns/m")


@pytest.fixture
async def world(clock):
    """A follower that runs, a family, targets n1 and n2, and the texts of Events."""
    said, complete = [], {"n1": True, "n2": True}
    family = Family()
    follower = Follower(
        Links(),
        US,
        complete=complete.get,
        events=SimpleNamespace(event=lambda _about, _type, _reason, text: said.append(text)),
        clock=clock,
    )
    follower.carry(family)
    targets = {node: Target(node, family) for node in ("n1", "n2")}
    running = asyncio.create_task(follower.run())
    await asyncio.sleep(0)
    follower._copies._by_node.update({n: t.there() for n, t in targets.items()})
    yield SimpleNamespace(follower=follower, family=family, said=said, complete=complete, **targets)
    running.cancel()
    await asyncio.wait([running])


async def bring(world, node="n1"):
    world.family.needs[node] = Need.WANTED
    return await world.follower.bring([Key(node, MAP)])


async def test_what_is_wanted_is_brought_once(world):
    assert await bring(world) == ""
    assert await bring(world) == ""
    assert world.n1.calls == ["create"]
    assert US.made(world.n1.objects["copy"])


async def test_a_pod_on_the_node_of_a_target_for_other_namespaces_brings_nothing(world):
    """Whoever makes pods may name any node in them."""
    world.n1.covered = False
    await bring(world)
    assert world.n1.calls == []


async def test_a_copy_that_differs_is_updated(world):
    await bring(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    await bring(world)
    assert world.n1.holds() == ["later"]
    assert world.n1.calls == ["create", "replace"]


def labelled(**labels):
    return content("now", uid="original", resourceVersion="6", labels=labels)


def with_labels(obj, **labels):
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


async def test_labels_alone_are_brought_up_to_date_once(world):
    await bring(world)
    world.family.body = labelled(app="x")
    await bring(world)
    await bring(world)
    assert world.n1.objects["copy"]["metadata"]["labels"]["app"] == "x"
    world.family.body = labelled()
    await bring(world)
    assert "app" not in world.n1.objects["copy"]["metadata"]["labels"]
    assert world.n1.calls == ["create", "replace", "replace"]


async def test_what_a_target_makes_of_labels_is_not_fought(world):
    def admit(body):
        return with_labels(body, **body["metadata"]["labels"] | {"app": "theirs"})

    world.n1.admit = admit
    world.family.body = labelled(app="ours")
    await bring(world)
    world.follower.wake(Key("n1", MAP))
    await asyncio.sleep(5 * LOOK_AGAIN)
    await bring(world)
    assert world.n1.calls == ["create"]
    world.family.body = labelled(app="ours", more="1")
    await bring(world)
    await bring(world)
    assert world.n1.calls == ["create", "replace"]


async def test_a_label_that_somebody_changed_is_put_right_but_not_as_often_as_they_like(world):
    world.family.body = labelled(app="ours")
    await bring(world)
    for _ in range(5):
        copy = world.n1.objects["copy"]
        world.n1.put(with_labels(copy, **copy["metadata"]["labels"] | {"app": "theirs"}))
        await bring(world)

    assert world.n1.calls == ["create"]
    await asyncio.sleep(LOOK_AGAIN + 0.1)
    assert world.n1.objects["copy"]["metadata"]["labels"]["app"] == "ours"
    assert world.n1.calls == ["create", "replace"]


@pytest.mark.parametrize(
    "error", [Denied(403, "Forbidden", "no way"), Invalid(422, "Invalid", "no way")]
)
async def test_a_target_that_lets_nobody_label_has_the_pod_all_the_same(world, error):
    await bring(world)
    world.family.body = labelled(app="x")
    world.n1.fail("replace", error)
    assert await bring(world) == ""
    assert world.said == ["labels of ConfigMap m do not follow to n1: no way"]


def refused(*, immutable):
    error = Invalid(422, "Invalid", "no way")
    error.immutable = immutable
    return error


async def test_a_copy_that_cannot_change_is_made_anew_and_that_is_said(world):
    await bring(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.n1.fail("replace", refused(immutable=True))
    assert await bring(world) == ""
    assert world.n1.holds() == ["later"]
    assert world.n1.calls == ["create", "replace", "discard", "create"]
    assert world.said == ["ConfigMap m of target n1 was deleted and made anew: no way"]


async def test_a_copy_stays_when_the_target_does_not_take_what_it_should_be(world):
    await bring(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.n1.fail("replace", refused(immutable=False))
    with pytest.raises(ConfigError, match="ConfigMap m cannot follow to target n1: no way"):
        await bring(world)

    assert world.n1.holds() == ["now"]
    assert world.said == ["ConfigMap m cannot follow to target n1: no way"]
    await asyncio.sleep(LOOK_AGAIN + 0.1)
    assert world.n1.holds() == ["later"]


async def test_a_copy_that_can_never_be_what_it_should_is_made_anew(world):
    await bring(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.family.update = lambda _body, _copy: None
    await bring(world)
    assert world.n1.holds() == ["later"]
    assert world.n1.calls == ["create", "discard", "create"]


async def test_an_unused_copy_goes_after_a_while(world):
    await bring(world)
    world.family.needs.clear()
    world.follower.wake(Key("n1", MAP))
    await asyncio.sleep(GRACE - 0.1)
    assert world.n1.holds() == ["now"]
    await asyncio.sleep(0.2)
    assert world.n1.holds() == []


async def test_a_next_user_in_time_keeps_a_copy(world):
    await bring(world)
    world.family.needs.clear()
    world.follower.wake(Key("n1", MAP))
    await asyncio.sleep(GRACE - 0.1)
    await bring(world)
    await asyncio.sleep(GRACE)
    assert world.n1.calls == ["create"]


async def test_nothing_is_removed_while_pods_are_not_all_known(world):
    await bring(world)
    world.family.needs.clear()
    world.complete["n1"] = False
    world.follower.wake(Key("n1", MAP))
    await asyncio.sleep(10 * GRACE)
    assert world.n1.holds() == ["now"]
    world.complete["n1"] = True
    await asyncio.sleep(GRACE)
    assert world.n1.holds() == []


async def test_nothing_is_done_before_the_list_of_copies_is_complete(world):
    world.n1.synced.clear()
    with pytest.raises(Unreachable, match=f"{PATIENCE:g} s"):
        await bring(world)

    assert world.n1.calls == []


async def test_a_copy_that_another_target_needs_in_the_same_cluster_stays(world):
    await bring(world, "n1")
    world.n2.put(world.n1.objects["copy"])
    world.family.needs = {"n2": Need.WANTED}
    world.follower.wake(Key("n1", MAP))
    await asyncio.sleep(2 * GRACE)
    assert world.n1.holds() == ["now"]
    world.family.needs = {}
    world.follower.wake(Key("n1", MAP))
    await asyncio.sleep(2 * GRACE)
    assert world.n1.holds() == []


async def test_a_copy_whose_original_is_gone_goes(world):
    await bring(world)
    world.family.body = None
    await bring(world)
    assert world.n1.calls == ["create", "discard"]


@pytest.mark.parametrize(
    "theirs", [{}, {keys.PARENT_CLUSTER_NAME: "c9"}, {"labelled": "otherwise"}]
)
async def test_what_is_not_ours_is_left_alone_and_said(world, theirs):
    world.n1.objects["foreign"] = content("theirs", uid="foreign", labels=theirs)
    world.n1.fail("create", AlreadyExists(409, "AlreadyExists", "there"))
    assert "not from this cluster" in await bring(world)
    assert "not from this cluster" in await bring(world)
    assert world.n1.calls == ["create", "get"]
    assert world.n1.holds() == ["theirs"]
    assert len(world.said) == 1


async def test_a_copy_of_an_earlier_original_that_holds_data_is_left_alone_and_said(world):
    await bring(world)
    world.family.body = content("later", uid="again", resourceVersion="6")
    world.family.replaces = lambda _copy, _original: False
    assert "is that of an earlier one of this name" in await bring(world)
    assert "parent-uid=original" in await bring(world)
    assert world.n1.calls == ["create"]
    assert world.n1.holds() == ["now"]
    assert len(world.said) == 1
    world.family.replaces = lambda _copy, _original: True  # somebody has given it the label
    await bring(world)
    assert world.n1.holds() == ["later"]


async def test_what_is_not_ours_but_the_same_is_not_worth_a_word(world):
    world.n1.objects["foreign"] = content("now", uid="foreign")
    world.n1.fail("create", AlreadyExists(409, "AlreadyExists", "there"))
    assert await bring(world) == ""
    assert world.said == []


async def test_a_copy_of_another_cluster_of_our_name_is_not_ours(world):
    labels = {keys.PARENT_CLUSTER_NAME: "c1"}
    notes = {keys.PARENT_CLUSTER_UID: "another"}
    world.n1.put(content("theirs", labels=labels, annotations=notes))
    world.n1.fail("create", AlreadyExists(409, "AlreadyExists", "there"))
    assert "not from this cluster" in await bring(world)
    assert world.n1.holds() == ["theirs"]


async def test_a_target_that_is_the_source_needs_nothing(world):
    world.n1.objects["original"] = content("now", uid="original")
    world.n1.fail("create", AlreadyExists(409, "AlreadyExists", "there"))
    assert await bring(world) == ""
    assert world.n1.calls == ["create", "get"]


@pytest.mark.parametrize("when", ["writing", "listing"])
async def test_missing_rights_are_explained(world, when):
    denied = Denied(403, "Forbidden", "no way")
    if when == "writing":
        world.n1.fail("create", denied)
    else:
        world.n1.synced.clear()
        world.n1.failure = denied

    with pytest.raises(ConfigError, match=r"may not follow to target n1: no way; .*configMapsAnd"):
        await bring(world)


async def test_a_conflict_is_tried_again_for_whoever_waits(world):
    world.n1.fail("create", Conflict(409, "Conflict", "changed"))
    assert await bring(world) == ""
    assert world.n1.holds() == ["now"]


async def test_a_target_that_does_not_answer_is_said_at_once(world):
    world.n1.fail("create", Unreachable("away"))
    with pytest.raises(Unreachable, match="away"):
        await bring(world)

    world.n1.link.health = Health(False, "Unreachable", "for long", datetime.now(UTC))
    with pytest.raises(Unreachable, match="for long"):
        await bring(world)


async def test_one_without_a_connection_is_said_too(world):
    with pytest.raises(Unreachable, match="not connected"):
        await world.follower.bring([Key("n9", MAP)])
