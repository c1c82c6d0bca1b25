"""A pod that is to speak as another account than its own goes only where that can be."""

from __future__ import annotations

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.following import foreign_tokens
from vnode.following.copies import TOKEN_TYPE
from vnode.runtime.links import TargetKey

pytestmark = pytest.mark.looptime

ACCOUNT = {"annotations": {"kubernetes.io/service-account.name": "executor"}}


class World:
    """The Secrets of a source and a target."""

    def __init__(self, clock):
        self.source, self.target = APIServer("c1", clock), APIServer("c2", clock)
        self._link = links.link_to(self.target, TargetKey("ns", "c2"), Identity("c1", "us"), clock)

    async def refuse(self, pod):
        await foreign_tokens.refuse(pod, self.source.client(), self._link)


def secret(**fields):
    return {"metadata": {"name": "exec", "namespace": "ns", **ACCOUNT}, **fields}


@pytest.fixture
async def world(clock):
    return World(clock)


def pod(path=keys.SERVICE_ACCOUNT_MOUNT, **secret):
    mounts = [{"name": "v", "mountPath": path}]
    spec = {"containers": [{"name": "c", "volumeMounts": mounts}], "serviceAccountName": "nobody"}
    spec["volumes"] = [{"name": "v", "secret": {"secretName": "exec", **secret}}]
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}


async def test_a_token_of_another_account_is_refused_by_name(world):
    world.source.add(kinds.SECRETS, secret(type=TOKEN_TYPE))
    with pytest.raises(ConfigError, match="Secret exec is the token of service account executor"):
        await world.refuse(pod())


async def test_one_that_the_target_has_a_secret_for_is_used(world):
    for server in (world.source, world.target):
        server.add(kinds.SECRETS, secret(type=TOKEN_TYPE))

    await world.refuse(pod())


@pytest.mark.parametrize(
    ("volume", "held"),
    [({}, [secret(type="Opaque")]), ({}, []), ({"optional": True}, [])],
    ids=["follows", "missing", "optional"],
)
async def test_other_secrets_there_are_as_anywhere(world, volume, held):
    for each in held:
        world.source.add(kinds.SECRETS, each)

    await world.refuse(pod(**volume))


async def test_a_pod_without_one_there_costs_nothing(world):
    await world.refuse(pod("/elsewhere"))
    await world.refuse(pod(secretName="nobody-token-x7f2k"))
    assert not world.source.requests
