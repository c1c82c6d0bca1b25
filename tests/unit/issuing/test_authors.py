"""Authors of AuthTokenRequests get no more than they have themselves."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.issuing.issuing_world import RULES, IssuingWorld
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("verb", "resource", "step"),
    [
        ("issue", "clustertargets", "AuthTokenRequestValid"),
        ("create", "serviceaccounts/token", "AuthTokenRequestValid"),
        ("get", "jobs", "RoleFoundOrCreated"),
    ],
)
async def test_an_author_gets_no_more_than_they_have(
    clock: Clock, verb: str, resource: str, step: str
) -> None:
    world = IssuingWorld(clock)
    for waiver in ("roles", "clusterroles"):
        world.source.refuse("escalate", waiver)

    world.source.refuse(verb, resource)
    world.request()
    async with world.running():
        assert world.conditions()[step] == ("False", "AuthorMayNot")
        assert f"alice may not {verb}" in world.message(step)

    assert (world.secret(), world.asked()) == (None, 0)
    assert not world.target.all(kinds.ROLE_BINDINGS)
    assert not world.target.all(kinds.ROLES)


async def test_a_role_that_exists_is_bound_only_for_those_who_have_what_it_allows(
    clock: Clock,
) -> None:
    world = IssuingWorld(clock)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    world.target.add(kinds.CLUSTER_ROLES, {"metadata": {"name": "cluster-admin"}, "rules": rules})
    world.source.refuse("bind", "clusterroles")
    world.source.refuse("*", "*")
    world.request(clusterRoles=[{"name": "cluster-admin", "rules": RULES}], roles=None)
    async with world.running():
        assert world.conditions()["ClusterRoleFoundOrCreated"] == ("False", "AuthorMayNot")
        assert not world.target.all(kinds.CLUSTER_ROLE_BINDINGS)
        world.source.refuse("bind", "clusterroles", refused=False)
        await asyncio.sleep(11)
        assert world.conditions()["ClusterRoleBindingCreated"][0] == "True"

    role = world.target.find(kinds.CLUSTER_ROLES, "cluster-admin") or {}
    assert (role["rules"], objects.labels(role)) == (rules, {})


async def test_an_author_who_loses_rights_gets_no_new_token(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.request()
    async with world.running():
        first = world.token()
        world.source.refuse("issue", "clustertargets")
        await asyncio.sleep(590)
        assert world.token() == first
        assert world.conditions()["AuthTokenRequestValid"] == ("False", "AuthorMayNot")


async def test_a_request_of_nobody_is_not_carried_out(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.request(author=None)
    forged = world.request("forged")
    world.source.change(
        kinds.AUTH_TOKEN_REQUESTS,
        "forged",
        "team",
        lambda obj: obj["metadata"]["annotations"].update({keys.AUTHOR: '{"username":"root"}'}),
    )
    assert keys.AUTHOR in objects.annotations(forged)
    async with world.running():
        for name in ("queue", "forged"):
            assert world.conditions(name) == {"AuthTokenRequestValid": ("False", "AuthorUnknown")}

    assert not world.target.received("create")
