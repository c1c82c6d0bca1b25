"""Authors of AuthTokenRequests get no more than they have themselves."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.issuing.issuing_environment import RULES, IssuingEnvironment
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
    env = IssuingEnvironment(clock)
    for waiver in ("roles", "clusterroles"):
        env.source.refuse("escalate", waiver)

    env.source.refuse(verb, resource)
    env.request()
    async with env.running():
        assert env.conditions()[step] == ("False", "AuthorMayNot")
        assert f"alice may not {verb}" in env.message(step)

    assert (env.secret(), env.asked()) == (None, 0)
    assert not env.target.all(kinds.ROLE_BINDINGS)
    assert not env.target.all(kinds.ROLES)


async def test_a_role_that_exists_is_bound_only_for_those_who_have_what_it_allows(
    clock: Clock,
) -> None:
    env = IssuingEnvironment(clock)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    env.target.add(kinds.CLUSTER_ROLES, {"metadata": {"name": "cluster-admin"}, "rules": rules})
    env.source.refuse("bind", "clusterroles")
    env.source.refuse("*", "*")
    env.request(clusterRoles=[{"name": "cluster-admin", "rules": RULES}], roles=None)
    async with env.running():
        assert env.conditions()["ClusterRoleFoundOrCreated"] == ("False", "AuthorMayNot")
        assert not env.target.all(kinds.CLUSTER_ROLE_BINDINGS)
        env.source.refuse("bind", "clusterroles", refused=False)
        await asyncio.sleep(11)
        assert env.conditions()["ClusterRoleBindingCreated"][0] == "True"

    role = env.target.find(kinds.CLUSTER_ROLES, "cluster-admin") or {}
    assert (role["rules"], objects.labels(role)) == (rules, {})


async def test_an_author_who_loses_rights_gets_no_new_token(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        first = env.token()
        env.source.refuse("issue", "clustertargets")
        await asyncio.sleep(590)
        assert env.token() == first
        assert env.conditions()["AuthTokenRequestValid"] == ("False", "AuthorMayNot")


async def test_a_request_of_nobody_is_not_carried_out(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request(author=None)
    forged = env.request("forged")
    env.source.change(
        kinds.AUTH_TOKEN_REQUESTS,
        "forged",
        "team",
        lambda obj: obj["metadata"]["annotations"].update({keys.AUTHOR: '{"username":"root"}'}),
    )
    assert keys.AUTHOR in objects.annotations(forged)
    async with env.running():
        for name in ("queue", "forged"):
            assert env.conditions(name) == {"AuthTokenRequestValid": ("False", "AuthorUnknown")}

    assert not env.target.received("create")
