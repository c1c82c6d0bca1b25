"""Which kinds of copies are watched in a target, and from when on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.errors import Unreachable
from vnode.api.identity import Identity
from vnode.api.listeners import subscription_scope
from vnode.api.target_key import TargetKey
from vnode.following.reference_index import Key
from vnode.following.references import Ref
from vnode.following.remote_copies import RemoteCopies
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise

pytestmark = pytest.mark.looptime

US = Identity("c1", "uid-1")
TARGET = TargetKey("", "n1")
NODE = TARGET.node_name
MAP = Key(NODE, Ref(kinds.CONFIG_MAPS, "ns", "m"))


class CopiesEnvironment:
    """A leader that follows the copies in a target; `woken` are the keys that it was woken for."""

    def __init__(self, clock):
        self.server = APIServer("c2", clock)
        self.link = links.link_to(self.server, TARGET, US, clock)
        self.links, self.woken = Links(), []
        family: Any = SimpleNamespace(serves=lambda _link: True, trim=None)
        self.copies = RemoteCopies(
            self.links,
            US,
            {kinds.CONFIG_MAPS: family, kinds.SECRETS: family},
            self.woken.append,
            lambda _node, kind: [MAP] if kind is kinds.CONFIG_MAPS else [],
        )
        self.leading = asyncio.create_task(self.lead())

    async def lead(self):
        async with supervise() as tasks:
            with subscription_scope():
                self.copies.open(tasks)
                await asyncio.Event().wait()

    async def connect(self):
        self.links.add(self.link)
        await asyncio.sleep(0.1)

    @property
    def watched(self):
        return [watch.kind for watch in self.server.watches()]


@pytest.fixture
async def env(clock):
    env = CopiesEnvironment(clock)
    await asyncio.sleep(0)
    yield env
    env.leading.cancel()
    await asyncio.wait([env.leading])


async def test_a_target_without_copies_is_known_and_not_watched(env):
    await env.connect()
    remote = env.copies.at(NODE)
    assert env.watched == []
    assert [request.query["limit"] for request in env.server.requests] == ["1", "1"]
    assert remote.is_listed(kinds.CONFIG_MAPS)
    assert remote.is_listed(kinds.SECRETS)
    assert env.woken == [MAP]


async def test_the_first_that_is_wanted_opens_the_watch_of_its_kind_alone(env):
    await env.connect()
    remote = env.copies.at(NODE)
    env.woken.clear()
    env.copies.follow(remote, kinds.CONFIG_MAPS)
    env.copies.follow(remote, kinds.CONFIG_MAPS)
    assert not remote.is_listed(kinds.CONFIG_MAPS)
    await asyncio.sleep(0.1)
    assert env.watched == [kinds.CONFIG_MAPS]
    assert remote.is_listed(kinds.CONFIG_MAPS)
    assert env.woken == [MAP]


async def test_a_target_that_has_copies_is_watched_at_once(env):
    labels = {keys.PARENT_CLUSTER_NAME: US.name}
    metadata = {"name": "m", "namespace": "ns", "labels": labels}
    for kind in (kinds.CONFIG_MAPS, kinds.SECRETS):
        env.server.add(kind, {"metadata": metadata})

    await env.connect()
    assert env.watched == [kinds.CONFIG_MAPS, kinds.SECRETS]
    assert env.copies.at(NODE).copy(MAP.ref)


async def test_objects_of_others_are_not_taken_for_copies(env):
    env.server.add(kinds.CONFIG_MAPS, {"metadata": {"name": "m", "namespace": "ns"}})
    await env.connect()
    assert env.watched == []


async def test_a_target_that_may_have_copies_is_watched_at_once(env):
    env.server.fail(
        Unreachable("no answer"), when=lambda request: request.query["limit"] == "1", times=2
    )
    await env.connect()
    assert env.watched == [kinds.CONFIG_MAPS, kinds.SECRETS]


async def test_who_no_longer_leads_follows_no_new_links(env):
    """It raised in the connection to the target, which failed for everybody."""
    env.leading.cancel()
    await asyncio.sleep(0)
    await env.connect()
    assert env.copies.at(NODE) is None
