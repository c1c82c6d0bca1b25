from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from vnode.api import keys, kinds
from vnode.api.errors import Unreachable
from vnode.api.identity import Identity
from vnode.kube.store import Store
from vnode.runtime.links import TargetKey
from vnode.targets import farewell

pytestmark = pytest.mark.looptime

OURS = Identity("c1", "uid")
THEIRS = {keys.PARENT_CLUSTER_UID: "another"}


class Target:
    """The chaperons of a target; `slow` ones stay until `release`, as with a running delegate."""

    def __init__(self, *names, slow=(), error=None):
        self.store, self.handlers, self.deleted, self.withdrawn = Store(), [], [], False
        self.slow, self.error, self.copies = set(slow), error, {}
        for name in names:
            self.add(name)

        self.link = SimpleNamespace(
            target=TargetKey("team", "c2"),
            client=SimpleNamespace(discard=self.discard, list=self.list),
            chaperons=SimpleNamespace(store=self.store, subscribe=self.handlers.append),
        )

    def add(self, name, **meta):
        chaperon = {"metadata": {"namespace": "team", "name": name, "uid": name, **meta}}
        self.store.put(chaperon)
        self.tell()

    def remove(self, name):
        self.store.pop(f"team/{name}")
        self.tell()

    def tell(self):
        for handler in self.handlers:
            handler(None, None)

    async def list(self, kind, namespace, *, label_selector):
        assert (namespace, label_selector) == ("team", OURS.selector)
        if self.error:
            raise self.error

        return self.copies.get(kind, [])

    async def discard(self, _kind, chaperon):
        name = chaperon["metadata"]["uid"]
        if self.error:
            raise self.error

        self.deleted.append(name)
        if name in self.slow:
            self.add(name, deletionTimestamp="now")
        elif f"team/{name}" in self.store:
            self.remove(name)

    async def say(self, clock):
        def withdraw():
            self.withdrawn = True

        await farewell.say(self.link, OURS.owns, OURS, withdraw, clock=clock)
        assert self.withdrawn


def elapsed():
    return asyncio.get_running_loop().time()


async def test_all_of_ours_are_deleted_and_no_others(clock):
    target = Target("a", "b")
    target.add("strange", annotations=THEIRS)
    await target.say(clock)
    assert sorted(target.deleted) == ["a", "b"]
    assert list(target.store) == ["team/strange"]
    assert elapsed() == farewell.SETTLE + farewell.LAST_LOOK


async def test_the_link_stays_until_delegates_have_ended(clock):
    target = Target("a", slow="a")
    asyncio.get_running_loop().call_later(4, target.remove, "a")
    asyncio.get_running_loop().call_later(3.9, lambda: target.deleted.append(target.withdrawn))
    await target.say(clock)
    assert target.deleted == ["a", False]
    assert elapsed() == 4 + farewell.SETTLE + farewell.LAST_LOOK


async def test_one_whose_creation_was_under_way_is_deleted_too(clock):
    target = Target("a")
    asyncio.get_running_loop().call_later(1.5, target.add, "late")
    await target.say(clock)
    assert target.deleted == ["a", "late"]


async def test_one_that_comes_late_is_deleted_after_the_link_was_withdrawn(clock):
    target = Target("a", slow="a")
    loop = asyncio.get_running_loop()
    loop.call_later(1, target.add, "late")
    loop.call_later(2, target.remove, "a")
    await target.say(clock)
    assert target.deleted == ["a", "late"]
    assert not len(target.store)


async def test_a_target_that_does_not_answer_costs_a_bounded_time(clock):
    target = Target("a", error=Unreachable("away"))
    await target.say(clock)
    assert list(target.store) == ["team/a"]
    assert elapsed() == farewell.PATIENCE + farewell.SETTLE + farewell.LAST_LOOK


async def test_what_followed_the_pods_goes_after_them(clock):
    target = Target("a")
    strange = {"metadata": {"uid": "strange", "annotations": THEIRS}}
    target.copies = {
        kinds.SECRETS: [{"metadata": {"uid": "secret"}}, strange],
        kinds.SERVICES: [{"metadata": {"uid": "service"}}],
    }
    await target.say(clock)
    assert target.deleted == ["a", "secret", "service"]
    assert target.withdrawn
