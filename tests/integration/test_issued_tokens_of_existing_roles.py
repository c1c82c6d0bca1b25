"""Roles that were in a target before an AuthTokenRequest named them stay as they are, and stay."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests import kit
from tests.integration.issuing import JOBS, REQUEST, Issuing, issued, to_issue
from tests.integration.issuing_fixtures import issuing, unled
from tests.rights import until_may
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects

__all__ = ["issuing", "unled"]

SECRETS = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
READ_JOBS = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]}]


class Existing(NamedTuple):
    """A Role or ClusterRole as somebody else has made it, and the condition that is about it."""

    role: Object
    kind: Kind
    binding_kind: Kind
    condition: str

    async def is_untouched(self, env: Issuing) -> bool:
        """Return the same version of the object: nobody has written it, not even the same again."""
        name, namespace = objects.name(self.role), objects.namespace(self.role) or None
        return await env.target.get(self.kind, name, namespace) == self.role

    async def bindings(self, env: Issuing) -> list[str]:
        """Return the names of bindings to it that are of a request."""
        found = await env.target.list(self.binding_kind, label_selector=keys.ISSUED)
        name = objects.name(self.role)
        return [objects.name(obj) for obj in found if obj["roleRef"]["name"] == name]

    async def request(self, env: Issuing) -> Object:
        """Have alice ask for a role of that name with the rules of `JOBS`."""
        name, namespace = objects.name(self.role), objects.namespace(self.role)
        if namespace:
            roles = [{"namespace": namespace, "name": name, "rules": JOBS}]
            return await env.request(env.alice, roles=roles)

        return await env.request(env.alice, roles=[], clusterRoles=[{"name": name, "rules": JOBS}])


async def existing(env: Issuing, kind: Kind, rules: Objects) -> Existing:
    metadata = {"name": f"{env.namespace}-mine"}
    if kind is kinds.ROLES:
        metadata["namespace"] = env.namespace

    role = await env.target.create(kind, {"metadata": metadata, "rules": rules})
    if kind is kinds.ROLES:
        return Existing(role, kind, kinds.ROLE_BINDINGS, "RoleFoundOrCreated")

    return Existing(role, kind, kinds.CLUSTER_ROLE_BINDINGS, "ClusterRoleFoundOrCreated")


async def delete(env: Issuing) -> None:
    await env.alice.delete(kinds.AUTH_TOKEN_REQUESTS, REQUEST, env.namespace)
    await kit.until_gone(env.source, kinds.AUTH_TOKEN_REQUESTS, env.namespace)
    accounts = await env.target.list(kinds.SERVICE_ACCOUNTS, env.queues)
    assert "queue" not in map(objects.name, accounts)


@pytest.mark.parametrize("kind", [kinds.ROLES, kinds.CLUSTER_ROLES], ids=lambda kind: kind.kind)
async def test_a_role_that_allows_more_than_the_author_may_is_refused_and_left_alone(
    issuing: Issuing, kind: Kind
) -> None:
    await issuing.allow_alice([*to_issue(issuing), *JOBS])
    mine = await existing(issuing, kind, SECRETS)
    await mine.request(issuing)
    condition = await issuing.until(mine.condition)
    assert (condition["status"], condition["reason"]) == ("False", "AuthorMayNot")
    key = objects.key(mine.role)
    assert f"cannot grant {kind.kind.lower()}/{key}: " in condition["message"]
    assert "alice may not get secrets" in condition["message"]
    assert await mine.bindings(issuing) == []
    with pytest.raises(NotFound):
        await issuing.secret()

    assert await mine.is_untouched(issuing)
    await delete(issuing)
    assert await mine.is_untouched(issuing)


@pytest.mark.parametrize("kind", [kinds.ROLES, kinds.CLUSTER_ROLES], ids=lambda kind: kind.kind)
async def test_a_role_that_the_author_may_give_is_bound_as_it_is_and_outlives_the_request(
    issuing: Issuing, kind: Kind
) -> None:
    await issuing.allow_alice([*to_issue(issuing), *JOBS])
    mine = await existing(issuing, kind, READ_JOBS)
    await mine.request(issuing)
    assert (await issuing.until("ServiceAccountTokenRetrieved"))["status"] == "True"
    assert (await issuing.until(mine.condition))["message"] == "1 roles: 1 found, 0 created"
    user = f"system:serviceaccount:{issuing.queues}:queue"
    await until_may(issuing.target, user, f"list batch/jobs {issuing.namespace}")
    async with issued(await issuing.secret()) as queue:
        assert await queue.list(kinds.JOBS, issuing.namespace) == []
        with pytest.raises(Denied):  # though the request's own rules would allow it
            await queue.create(kinds.JOBS, {"metadata": {"name": "a"}}, issuing.namespace)

    assert len(await mine.bindings(issuing)) == 1
    assert await mine.is_untouched(issuing)
    await delete(issuing)
    assert await mine.bindings(issuing) == []
    assert await mine.is_untouched(issuing)
