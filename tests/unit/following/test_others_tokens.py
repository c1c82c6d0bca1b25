"""A pod that is to speak as another account than its own goes only where that can be."""

from __future__ import annotations

import pytest

from vnode.api import keys
from vnode.api.errors import ConfigError, NotFound
from vnode.following import others_tokens
from vnode.following.copies import TOKEN_TYPE
from vnode.runtime.links import TargetKey

ACCOUNT = {"annotations": {"kubernetes.io/service-account.name": "executor"}}


class Secrets:
    """Those of one cluster, and which of them were read."""

    def __init__(self, **held):
        self.held, self.read = held, []

    async def get(self, _kind, name, _namespace):
        self.read.append(name)
        if name not in self.held:
            raise NotFound(404, "NotFound", name)

        return self.held[name]


class Link:
    target = TargetKey("ns", "c2")

    def __init__(self, **held):
        self.client = Secrets(**held)


def pod(path=keys.SERVICE_ACCOUNT_MOUNT, **secret):
    mounts = [{"name": "v", "mountPath": path}]
    spec = {"containers": [{"name": "c", "volumeMounts": mounts}], "serviceAccountName": "nobody"}
    spec["volumes"] = [{"name": "v", "secret": {"secretName": "exec", **secret}}]
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}


async def test_a_token_of_another_account_is_refused_by_name():
    source = Secrets(exec={"type": TOKEN_TYPE, "metadata": ACCOUNT})
    with pytest.raises(ConfigError, match="Secret exec is the token of service account executor"):
        await others_tokens.refuse(pod(), source, Link())


async def test_one_that_the_target_has_a_secret_for_is_used():
    source = Secrets(exec={"type": TOKEN_TYPE, "metadata": ACCOUNT})
    await others_tokens.refuse(pod(), source, Link(exec={}))


@pytest.mark.parametrize(
    ("secret", "held"),
    [({}, {"exec": {"type": "Opaque"}}), ({}, {}), ({"optional": True}, {})],
    ids=["follows", "missing", "optional"],
)
async def test_other_secrets_there_are_as_anywhere(secret, held):
    await others_tokens.refuse(pod(**secret), Secrets(**held), Link())


async def test_a_pod_without_one_there_costs_nothing():
    source = Secrets()
    await others_tokens.refuse(pod("/elsewhere"), source, Link())
    await others_tokens.refuse(pod(secretName="nobody-token-x7f2k"), source, Link())
    assert not source.read
