"""Which kinds of copies are watched in a target, and from when on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests import computing
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from vnode.api import keys, kinds
from vnode.api.errors import Denied, Unreachable
from vnode.api.identity import Identity
from vnode.api.listeners import subscription_scope
from vnode.api.target_key import TargetKey
from vnode.following.family import Family
from vnode.following.reference_index import Key
from vnode.following.references import Ref
from vnode.following.remote_copies import RemoteCopies
from vnode.following.remote_informers import RETRY
from vnode.kube.reflector_backoff import STARTING
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise

pytestmark = pytest.mark.looptime

US = Identity("c1", "uid-1")
TARGET = TargetKey("", "n1")
NODE = TARGET.node_name
MAP = Key(NODE, Ref(kinds.CONFIG_MAPS, "ns", "m"))
SECRET = Key(NODE, Ref(kinds.SECRETS, "ns", "m"))


class CopiesEnvironment:
    """A leader that follows the copies in a target; `woken` are the keys that it was woken for."""

    def __init__(self, clock):
        self.server = APIServer("c2", clock)
        self.link = links.link_to(self.server, TARGET, US, clock)
        self.links, self.woken = Links(), []
        family: Any = SimpleNamespace(serves=lambda _link: True, trim=None, role=Family.role)
        self.copies = RemoteCopies(
            self.links,
            US,
            {kinds.CONFIG_MAPS: family, kinds.SECRETS: family},
            self.woken.append,
            lambda _node, kind: [MAP] if kind is kinds.CONFIG_MAPS else [],
            lambda _link: ("ns", "left", "closed"),
            clock,
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
    assert remote.is_listed(MAP.ref)
    assert remote.is_listed(SECRET.ref)
    assert env.woken == [MAP]


async def test_the_first_that_is_wanted_opens_the_watch_of_its_kind_alone(env):
    await env.connect()
    remote = env.copies.at(NODE)
    env.woken.clear()
    env.copies.follow(remote, MAP.ref)
    env.copies.follow(remote, MAP.ref)
    assert not remote.is_listed(MAP.ref)
    await asyncio.sleep(0.1)
    assert env.watched == [kinds.CONFIG_MAPS]
    assert remote.is_listed(MAP.ref)
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


async def test_all_of_a_target_that_changes_is_woken_in_steps(clock):
    """A target may be well and not well in turn, and a tenant's pods refer to very much."""
    env = CopiesEnvironment(WorkingClock(clock))
    wanted = [Key(NODE, Ref(kinds.CONFIG_MAPS, "ns", str(number))) for number in range(100_000)]
    await env.connect()
    env.copies._wanted = lambda _node, _kind: iter(wanted)
    env.woken.clear()
    with computing.steps() as steps:
        asyncio.get_running_loop().call_soon(env.link.report, "a task", OSError())
        await asyncio.sleep(1)

    assert max(steps) < 0.02
    assert set(env.woken) == set(wanted)
    env.leading.cancel()
    await asyncio.wait([env.leading])


async def test_a_namespace_that_gets_its_label_has_its_own_objects_woken(env):
    await env.connect()
    env.woken.clear()
    for namespace in ("ns", "other"):
        env.copies.wake_kind(kinds.CONFIG_MAPS, namespace)

    await asyncio.sleep(0.1)
    assert env.woken == [MAP]


async def test_who_no_longer_leads_follows_no_new_links(env):
    """It raised in the connection to the target, which failed for everybody."""
    env.leading.cancel()
    await asyncio.sleep(0)
    await env.connect()
    assert env.copies.at(NODE) is None


DENIED = Denied(403, "Forbidden", "secrets is forbidden")


def secret_in(namespace: str) -> dict[str, Any]:
    labels = {keys.PARENT_CLUSTER_NAME: US.name}
    return {"metadata": {"name": "m", "namespace": namespace, "labels": labels}}


class SelectingSource:
    """Has the target let us list Secrets in some of its namespaces only."""

    def __init__(self, env: CopiesEnvironment) -> None:
        self.granted = {"ns", "left"}
        for namespace in ("ns", "left", "closed"):
            env.server.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

        for namespace in ("left", "closed"):
            env.server.add(kinds.SECRETS, secret_in(namespace))

        env.server.fail(
            DENIED,
            kind=kinds.SECRETS,
            when=lambda request: request.namespace not in self.granted,
            times=None,
        )


@pytest.fixture
async def selecting(env: CopiesEnvironment) -> SelectingSource:
    return SelectingSource(env)


async def test_where_all_at_once_is_denied_namespaces_are_looked_into_one_by_one(env, selecting):
    await env.connect()
    remote = env.copies.at(NODE)
    left = Ref(kinds.SECRETS, "left", "m")
    assert remote.copy(left)
    assert remote.is_listed(left)
    assert Key(NODE, left) in env.woken
    assert env.watched.count(kinds.SECRETS) == 1  # nothing is left or wanted elsewhere
    assert env.link.namespaces == {"left"}
    assert remote.is_listed(MAP.ref)  # other kinds are listed as before


async def test_a_namespace_is_watched_once_something_is_wanted_there(env, selecting):
    await env.connect()
    remote = env.copies.at(NODE)
    assert remote.is_unwatched(SECRET.ref)
    assert not remote.is_listed(SECRET.ref)
    env.copies.follow(remote, SECRET.ref)
    env.copies.follow(remote, SECRET.ref)
    await asyncio.sleep(0.1)
    assert remote.is_listed(SECRET.ref)
    assert not remote.is_unwatched(SECRET.ref)
    assert env.watched.count(kinds.SECRETS) == 2


async def test_a_namespace_that_is_denied_says_so_until_it_is_given(env, selecting):
    await env.connect()
    remote, closed = env.copies.at(NODE), Ref(kinds.SECRETS, "closed", "m")
    env.copies.follow(remote, closed)
    await asyncio.sleep(0.1)
    assert remote.informers[kinds.SECRETS].failure("closed") == DENIED
    assert remote.informers[kinds.SECRETS].failure("left") is None
    assert not remote.is_unwatched(closed)
    selecting.granted.add("closed")
    await asyncio.sleep(RETRY)
    assert remote.is_listed(closed)
    assert remote.copy(closed)


async def test_a_namespace_that_was_denied_is_asked_for_when_something_new_is_wanted_there(
    env, selecting
):
    await env.connect()
    remote, closed = env.copies.at(NODE), Ref(kinds.SECRETS, "closed", "m")
    env.copies.follow(remote, closed)
    await asyncio.sleep(RETRY + 0.1)  # denied twice, and not asked for by itself for 10 s
    assert not remote.is_unwatched(closed)
    selecting.granted.add("closed")
    await asyncio.sleep(RETRY)
    assert not remote.is_listed(closed)
    assert remote.is_unwatched(closed)
    assert remote.informers[kinds.SECRETS].failure("closed") is None  # not known by now
    env.copies.follow(remote, closed)
    await asyncio.sleep(0.1)
    assert remote.is_listed(closed)
    assert remote.copy(closed)


async def test_what_was_known_of_all_is_watched_on_when_a_source_may_list_all_no_more(env):
    for namespace in ("ns", "left"):
        env.server.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        env.server.add(kinds.SECRETS, secret_in(namespace))

    await env.connect()
    remote = env.copies.at(NODE)
    assert remote.copy(SECRET.ref)
    env.server.fail(
        DENIED, kind=kinds.SECRETS, when=lambda request: not request.namespace, times=None
    )
    env.server.cut_watches()
    await asyncio.sleep(2 * STARTING)
    assert env.link.namespaces == {"ns", "left"}
    assert remote.copy(SECRET.ref)
    env.server.remove(kinds.SECRETS, "m", "ns")
    await asyncio.sleep(0.1)
    assert remote.copy(SECRET.ref) is None
