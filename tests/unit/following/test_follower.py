from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.errors import ConfigError, Conflict, Denied, Invalid, Unreachable
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import copies
from vnode.following.config_objects import ConfigObjects
from vnode.following.family import Original
from vnode.following.follower import GRACE, TIMEOUT, Follower
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.following.writing import RECHECK
from vnode.runtime.links import LinkHealth, Links, TargetKey

pytestmark = pytest.mark.looptime

US = Identity("c1", "uid-1")
MAP = Ref(kinds.CONFIG_MAPS, "ns", "m")
N1, N2 = (TargetKey("", name).node_name for name in ("n1", "n2"))
VERBS = ("get", "create", "update", "delete")


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

    def keys_on(self, node):
        return [Key(node, MAP)] if node in self.needs else []

    def involved_objects(self, _key):
        return iter(self.pods)

    async def open(self, group):
        pass

    async def original(self, _ref, *, sure):
        if self.body is None:
            return None

        marks = copies.marks(copies.content(self.body, US))
        return Original("original", "5", self.trim(self.body)["digest"], marks, self.body)


class World:
    """A follower, a family, and two Targets that lead to one cluster. `messages` are of Events.

    `admit` is a mutating webhook of the target.
    """

    def __init__(self, clock):
        self.server, self.clock = APIServer("c2", clock), clock
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        self.admit: Callable[[Object], Object] = lambda obj: obj
        self.server.admit(lambda _request, obj: self.admit(obj))
        self.family, self.links = Family(), Links()
        self.messages, self.complete = [], {N1: True, N2: True}
        self.namespaces = set()  # without the label
        self.follower = Follower(
            self.links,
            US,
            enabled_namespaces=SimpleNamespace(
                is_enabled=lambda name: name not in self.namespaces,
                subscribe=lambda _listener: None,
            ),
            complete=self.complete.get,
            events=SimpleNamespace(
                event=lambda _about, _type, _reason, text: self.messages.append(text)
            ),
            clock=clock,
        )
        self.follower.carry(self.family)

    def event(self, _about, _type, _reason, text):
        self.messages.append(text)

    def connect(self, name, namespace=""):
        target = TargetKey(namespace, name)
        link = links.link_to(self.server, target, US, self.clock, cluster_uid="c2")
        self.links.add(link)
        return link

    @property
    def copy(self):
        return self.server.find(kinds.CONFIG_MAPS, "m", "ns")

    @property
    def holds(self):
        return [obj["data"]["a"] for obj in self.server.all(kinds.CONFIG_MAPS)]

    @property
    def calls(self):
        """The verbs of requests about one object."""
        return [request.verb for request in self.server.requests if request.verb in VERBS]

    def put(self, body):
        """Write an object as somebody else."""
        self.server.add(kinds.CONFIG_MAPS, body)

    def fail(self, verb, error):
        self.server.fail(error, verb=verb)


@pytest.fixture
async def world(clock):
    world = World(clock)
    async with background.running(world.follower.run()):
        await asyncio.sleep(0)
        world.connect("n1")
        world.connect("n2")
        yield world


async def ensure(world, node=N1):
    world.family.needs[node] = Need.WANTED
    return await world.follower.ensure([Key(node, MAP)])


async def test_what_is_wanted_is_brought_once(world):
    assert await ensure(world) == ""
    assert await ensure(world) == ""
    assert world.calls == ["create"]
    assert US.made(world.copy)


async def test_a_pod_on_the_node_of_a_target_for_other_namespaces_copies_nothing(world):
    """Whoever makes pods may name any node in them."""
    link = world.connect("n3", namespace="other")
    await ensure(world, link.node_name)
    assert world.calls == []


async def test_nothing_new_is_copied_out_of_a_namespace_without_the_label(world):
    world.namespaces.add("ns")
    await ensure(world)
    assert world.calls == []
    world.namespaces.clear()
    await ensure(world)
    world.namespaces.add("ns")
    await ensure(world)
    assert world.calls == ["create"]  # what is there stays for the pods that run


async def test_a_copy_that_differs_is_updated(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    await ensure(world)
    assert world.holds == ["later"]
    assert world.calls == ["create", "update"]


def labelled(**labels):
    return content("now", uid="original", resourceVersion="6", labels=labels)


def with_labels(obj, **labels):
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


async def test_labels_alone_are_brought_up_to_date_once(world):
    await ensure(world)
    world.family.body = labelled(app="x")
    await ensure(world)
    await ensure(world)
    assert world.copy["metadata"]["labels"]["app"] == "x"
    world.family.body = labelled()
    await ensure(world)
    assert "app" not in world.copy["metadata"]["labels"]
    assert world.calls == ["create", "update", "update"]


async def test_what_a_target_makes_of_labels_is_not_fought(world):
    def admit(body):
        return with_labels(body, **body["metadata"]["labels"] | {"app": "theirs"})

    world.admit = admit
    world.family.body = labelled(app="ours")
    await ensure(world)
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(5 * RECHECK)
    await ensure(world)
    assert world.calls == ["create"]
    world.family.body = labelled(app="ours", more="1")
    await ensure(world)
    await ensure(world)
    assert world.calls == ["create", "update"]


async def test_a_label_that_somebody_changed_is_put_right_but_not_as_often_as_they_like(world):
    world.family.body = labelled(app="ours")
    await ensure(world)
    for _ in range(5):
        copy = world.copy
        world.put(with_labels(copy, **copy["metadata"]["labels"] | {"app": "theirs"}))
        await ensure(world)

    assert world.calls == ["create"]
    await asyncio.sleep(RECHECK + 0.1)
    assert world.copy["metadata"]["labels"]["app"] == "ours"
    assert world.calls == ["create", "update"]


@pytest.mark.parametrize(
    "error", [Denied(403, "Forbidden", "no way"), Invalid(422, "Invalid", "no way")]
)
async def test_a_target_that_lets_nobody_label_has_the_pod_all_the_same(world, error):
    await ensure(world)
    world.family.body = labelled(app="x")
    world.fail("update", error)
    assert await ensure(world) == ""
    assert world.messages == ["labels of ConfigMap m cannot follow to target n1: no way"]


def refused(*, immutable):
    error = Invalid(422, "Invalid", "no way")
    error.immutable = immutable
    return error


async def test_a_copy_that_cannot_change_is_recreated_and_that_is_said(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.fail("update", refused(immutable=True))
    assert await ensure(world) == ""
    assert world.holds == ["later"]
    assert world.calls == ["create", "update", "delete", "create"]
    assert world.messages == ["ConfigMap m of target n1 was deleted and recreated: no way"]


async def test_a_copy_stays_when_the_target_does_not_take_what_it_should_be(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.fail("update", refused(immutable=False))
    with pytest.raises(ConfigError, match="ConfigMap m cannot follow to target n1: no way"):
        await ensure(world)

    assert world.holds == ["now"]
    assert world.messages == ["ConfigMap m cannot follow to target n1: no way"]
    await asyncio.sleep(RECHECK + 0.1)
    assert world.holds == ["later"]


async def test_a_copy_that_can_never_be_what_it_should_is_recreated(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.family.update = lambda _body, _copy: None
    await ensure(world)
    assert world.holds == ["later"]
    assert world.calls == ["create", "delete", "create"]


async def test_an_unused_copy_goes_after_a_while(world):
    await ensure(world)
    world.family.needs.clear()
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(GRACE - 0.1)
    assert world.holds == ["now"]
    await asyncio.sleep(0.2)
    assert world.holds == []


async def test_a_next_user_in_time_keeps_a_copy(world):
    await ensure(world)
    world.family.needs.clear()
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(GRACE - 0.1)
    await ensure(world)
    await asyncio.sleep(GRACE)
    assert world.calls == ["create"]


async def test_nothing_is_removed_while_pods_are_not_all_known(world):
    await ensure(world)
    world.family.needs.clear()
    world.complete[N1] = False
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(10 * GRACE)
    assert world.holds == ["now"]
    world.complete[N1] = True
    await asyncio.sleep(GRACE)
    assert world.holds == []


async def test_nothing_is_done_before_the_list_of_copies_is_complete(world):
    world.server.fail(None, verb="list", delay=math.inf, times=None)
    with pytest.raises(Unreachable, match=f"{TIMEOUT:g} s"):
        await ensure(world)

    assert world.calls == []


async def test_a_copy_that_another_target_needs_in_the_same_cluster_stays(world):
    await ensure(world, N1)
    await ensure(world, N2)
    world.family.needs = {N2: Need.WANTED}
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(2 * GRACE)
    assert world.holds == ["now"]
    world.family.needs = {}
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(2 * GRACE)
    assert world.holds == []


async def test_a_copy_whose_original_is_gone_goes(world):
    await ensure(world)
    world.family.body = None
    await ensure(world)
    assert world.calls == ["create", "delete"]


@pytest.mark.parametrize(
    "theirs", [{}, {keys.PARENT_CLUSTER_NAME: "c9"}, {"labelled": "otherwise"}]
)
async def test_what_is_not_ours_is_left_alone_and_said(world, theirs):
    world.put(content("theirs", uid="foreign", labels=theirs))
    assert "not from this cluster" in await ensure(world)
    assert "not from this cluster" in await ensure(world)
    assert world.calls == ["create", "get"]
    assert world.holds == ["theirs"]
    assert len(world.messages) == 1


async def test_a_copy_of_an_earlier_original_that_holds_data_is_left_alone_and_said(world):
    await ensure(world)
    world.family.body = content("later", uid="again", resourceVersion="6")
    world.family.replaces = lambda _copy, _original: False
    assert "is that of an earlier one of this name" in await ensure(world)
    assert "parent-uid=original" in await ensure(world)
    assert world.calls == ["create"]
    assert world.holds == ["now"]
    assert len(world.messages) == 1
    world.family.replaces = lambda _copy, _original: True  # somebody has given it the label
    await ensure(world)
    assert world.holds == ["later"]


async def test_what_is_not_ours_but_the_same_is_not_worth_a_word(world):
    world.put(content("now", uid="foreign"))
    assert await ensure(world) == ""
    assert world.messages == []


async def test_a_copy_of_another_cluster_of_our_name_is_not_ours(world):
    labels = {keys.PARENT_CLUSTER_NAME: "c1"}
    annotations = {keys.PARENT_CLUSTER_UID: "another"}
    world.put(content("theirs", labels=labels, annotations=annotations))
    assert "not from this cluster" in await ensure(world)
    assert world.holds == ["theirs"]


async def test_a_target_that_is_the_source_needs_nothing(world):
    world.put(content("now", uid="original"))
    assert await ensure(world) == ""
    assert world.calls == ["create", "get"]


@pytest.mark.parametrize("verb", ["create", "list"])
async def test_missing_rights_are_explained(world, verb):
    world.server.fail(Denied(403, "Forbidden", "no way"), verb=verb, times=None)
    link = world.connect("n3")
    await asyncio.sleep(1)
    with pytest.raises(ConfigError, match=r"may not follow to target n3: no way; .*configMapsAnd"):
        await ensure(world, link.node_name)


async def test_a_conflict_is_tried_again_for_whoever_waits(world):
    world.fail("create", Conflict(409, "Conflict", "changed"))
    assert await ensure(world) == ""
    assert world.holds == ["now"]


async def test_a_target_that_does_not_answer_is_said_at_once(world):
    world.fail("create", Unreachable("away"))
    with pytest.raises(Unreachable, match="away"):
        await ensure(world)

    link = world.links.get(N1)
    link.set_health(LinkHealth(False, "Unreachable", "for long", world.clock.now()))
    with pytest.raises(Unreachable, match="for long"):
        await ensure(world)


async def test_one_without_a_connection_is_said_too(world):
    with pytest.raises(Unreachable, match="not connected"):
        await world.follower.ensure([Key("n9", MAP)])
