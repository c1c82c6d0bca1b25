"""Which kinds of copies are watched in a target, and from when on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.api.identity import Identity
from vnode.api.listeners import period
from vnode.following import there as module
from vnode.following.references import Ref
from vnode.following.there import Copies
from vnode.following.users import Key
from vnode.kube.store import Store
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise

US = Identity("c1", "uid-1")
MAP = Key("n1", Ref(kinds.CONFIG_MAPS, "ns", "m"))


class FakeInformer:
    """One that lists nothing; counts how many run."""

    def __init__(self, client, kind, **_options):
        self.store, self.synced, self.failure = Store(), asyncio.Event(), None
        self._runs, self.kind = client.watched, kind

    def subscribe(self, _handler):
        pass

    async def run(self):
        self._runs.append(self.kind)
        self.synced.set()
        await asyncio.Event().wait()


class Target:
    """A link, and its client, to a target that has these items of the kinds asked for."""

    def __init__(self, items):
        self.items, self.watched, self.asked, self.failures = items, [], [], {}
        self.client, self.is_self, self.node_name = self, False, "n1"
        self.target = SimpleNamespace(namespace="", name="n1")
        self.health = SimpleNamespace(healthy=True)

    def on_health(self, _listener):
        pass

    def report(self, task, error):
        self.failures[task] = error

    async def request(self, _method, path, *, query):
        self.asked.append((path, query))
        if isinstance(self.items, Exception):
            raise self.items

        return {"items": self.items}


@pytest.fixture
async def follow(monkeypatch):
    """Follow a target; gives the copies and the keys that were woken."""
    monkeypatch.setattr(module, "Informer", FakeInformer)
    family = SimpleNamespace(serves=lambda _link: True, trim=None)
    links, woken = Links(), []
    copies = Copies(
        links,
        US,
        {kinds.CONFIG_MAPS: family, kinds.SECRETS: family},
        woken.append,
        lambda _node, kind: [MAP] if kind is kinds.CONFIG_MAPS else [],
    )

    async def lead():
        async with supervise() as tasks:
            with period():
                copies.open(tasks)
                await asyncio.Event().wait()

    async def add(target):
        links.add(target)
        for _ in range(20):
            await asyncio.sleep(0)

    leading = asyncio.create_task(lead())
    await asyncio.sleep(0)
    yield SimpleNamespace(copies=copies, woken=woken, add=add, leading=leading)
    leading.cancel()
    await asyncio.wait([leading])


async def test_a_target_without_copies_is_known_and_not_watched(follow):
    target = Target([])
    await follow.add(target)
    there = follow.copies.at("n1")
    assert target.watched == []
    assert [query["limit"] for _path, query in target.asked] == ["1", "1"]
    assert there.is_listed(kinds.CONFIG_MAPS)
    assert there.is_listed(kinds.SECRETS)
    assert follow.woken == [MAP]


async def test_the_first_that_is_wanted_opens_the_watch_of_its_kind_alone(follow):
    target = Target([])
    await follow.add(target)
    there = follow.copies.at("n1")
    follow.woken.clear()
    follow.copies.follow(there, kinds.CONFIG_MAPS)
    follow.copies.follow(there, kinds.CONFIG_MAPS)
    assert not there.is_listed(kinds.CONFIG_MAPS)
    for _ in range(20):
        await asyncio.sleep(0)

    assert target.watched == [kinds.CONFIG_MAPS]
    assert there.is_listed(kinds.CONFIG_MAPS)
    assert follow.woken == [MAP]


@pytest.mark.parametrize("items", [[{"metadata": {"name": "m"}}], Unreachable("no answer")])
async def test_a_target_that_has_copies_or_may_have_is_watched_at_once(follow, items):
    target = Target(items)
    await follow.add(target)
    assert target.watched == [kinds.CONFIG_MAPS, kinds.SECRETS]


async def test_who_no_longer_leads_follows_no_new_links(follow):
    """It raised in the connection to the target, which failed for everybody."""
    follow.leading.cancel()
    await asyncio.sleep(0)
    await follow.add(Target([]))
    assert follow.copies.at("n1") is None
