"""A follower of a ConfigMap, whose need and original are as the test says, and two Targets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.errors import Invalid
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.following import copies
from vnode.following.config_objects import ConfigObjects
from vnode.following.family import Original
from vnode.following.follower import Follower
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.runtime.links import Links

US = Identity("c1", "uid-1")
MAP = Ref(kinds.CONFIG_MAPS, "ns", "m")
N1, N2 = (TargetKey("", name).node_name for name in ("n1", "n2"))
VERBS = ("get", "create", "update", "delete")


def content(text, **metadata):
    return {"metadata": {"name": "m", "namespace": "ns", **metadata}, "data": {"a": text}}


class FakeFamily(ConfigObjects):
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

    def has_changed(self, _ref):
        return False

    async def original(self, ref, _link, copy):
        if self.body is None:
            return None

        marks = copies.marks(copies.content(self.body, US))
        return Original("original", "5", self.trim(self.body)["digest"], marks, self.body)


class FollowerEnvironment:
    """A follower, a family, and two Targets that lead to one cluster. `messages` are of Events.

    `admit` is a mutating webhook of the target.
    """

    def __init__(self, clock):
        self.server, self.clock = APIServer("c2", clock), clock
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        self.admit: Callable[[Object], Object] = lambda obj: obj
        self.server.admit(lambda _request, obj: self.admit(obj))
        self.family, self.links = FakeFamily(), Links()
        self.messages, self.complete = [], {N1: True, N2: True}
        self.namespaces = set()  # without the label
        self.follower = Follower(
            self.links,
            US,
            enabled_namespaces=SimpleNamespace(
                is_enabled=lambda name: name not in self.namespaces,
                names=lambda: ["ns"],
                subscribe=lambda _listener: None,
            ),
            complete=lambda node, _namespace: self.complete[node],
            events=SimpleNamespace(
                event=lambda _about, _type, _reason, text: self.messages.append(text)
            ),
            clock=clock,
        )
        self.follower.carry(self.family)

    def event(self, _about, _type, _reason, text):
        self.messages.append(text)

    def connect(self, name, namespace="", server=None):
        target = TargetKey(namespace, name)
        link = links.link_to(server or self.server, target, US, self.clock, cluster_uid="c2")
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
async def env(clock):
    env = FollowerEnvironment(clock)
    async with background.running(env.follower.run()):
        await asyncio.sleep(0)
        env.connect("n1")
        env.connect("n2")
        yield env


async def ensure(env, node=N1):
    env.family.needs[node] = Need.WANTED
    return await env.follower.ensure([Key(node, MAP)])


def labelled(**labels):
    return content("now", uid="original", resourceVersion="6", labels=labels)


def refused(*, immutable):
    error = Invalid(422, "Invalid", "no way")
    error.immutable = immutable
    return error
