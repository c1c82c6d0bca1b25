"""AuthTokenRequests on real API servers: the token works for what was asked, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.issuing import JOBS, REQUEST, Issuing, issued, to_issue
from tests.integration.issuing_fixtures import issuing, unled
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Invalid, NotFound

__all__ = ["issuing", "unled"]


async def test_a_token_works_for_what_was_asked_and_nothing_else(issuing: Issuing) -> None:
    with pytest.raises(Denied, match=f"may not issue clustertargets.* named {issuing.namespace}"):
        await issuing.request(issuing.alice)

    await issuing.allow_alice([*to_issue(issuing), *JOBS])
    made = await issuing.request(issuing.alice)
    assert (
        f'"username":"system:serviceaccount:{issuing.namespace}:alice"'
        in (objects.annotations(made)[keys.AUTHOR])
    )
    assert (await issuing.until("ServiceAccountTokenRetrieved"))["status"] == "True"
    async with issued(await issuing.secret()) as queue:
        assert await queue.list(kinds.JOBS, issuing.namespace) == []
        for kind, namespace in (
            (kinds.JOBS, "default"),
            (kinds.SECRETS, issuing.namespace),
            (kinds.SERVICE_ACCOUNTS, issuing.queues),
        ):
            with pytest.raises(Denied):
                await queue.list(kind, namespace)

    await issuing.alice.delete(kinds.AUTH_TOKEN_REQUESTS, REQUEST, issuing.namespace)
    await issuing.until_deleted()


async def test_nobody_gives_what_they_do_not_have(issuing: Issuing) -> None:
    await issuing.allow_alice(to_issue(issuing))
    with pytest.raises(Denied, match=r"cannot grant role/.*alice may not get jobs\.batch"):
        await issuing.request(issuing.alice)

    # The administrator has everything here, and the source's account in the target has not.
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    roles = [{"namespace": issuing.namespace, "name": "secrets", "rules": rules}]
    await issuing.request(issuing.source, "admin", roles=roles)
    condition = await issuing.until("RoleFoundOrCreated", "admin")
    assert (condition["status"], condition["reason"]) == ("False", "Forbidden")
    assert "attempting to grant RBAC permissions not currently held" in condition["message"]
    with pytest.raises(NotFound):
        await issuing.source.get(kinds.SECRETS, "admin", issuing.namespace)


async def test_the_author_stays_who_created_it_and_the_request_what_it_was(
    issuing: Issuing,
) -> None:
    await issuing.allow_alice(to_issue(issuing))
    before = objects.annotations(await issuing.request(issuing.alice, roles=[]))
    forged: dict[str, Any] = {keys.AUTHOR: '{"username":"root"}', keys.AUTHOR_SIGNATURE: None}
    body = {"metadata": {"annotations": forged}}
    kind = kinds.AUTH_TOKEN_REQUESTS
    after = await issuing.alice.patch(kind, "queue", body, issuing.namespace)
    assert objects.annotations(after) == before
    changed = {"spec": {"serviceAccountName": "default"}}
    with pytest.raises(Invalid, match="cannot be changed"):
        await issuing.alice.patch(kind, "queue", changed, issuing.namespace)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"targetClusterProfile": {"name": "east"}}, "one of the two"),
        ({"targetRef": None}, "one of the two"),
        ({"serviceAccountName": "../x"}, "should match"),
        ({"roles": [{"namespace": "a", "name": "a/../b"}]}, "should match"),
        ({"clusterRoles": [{"name": f"r{i}"} for i in range(21)]}, "at most 20 items"),
        ({"clusterRoles": [{"name": "a"}, {"name": "a"}]}, "Duplicate value"),
        ({"expirationSeconds": 599}, "greater than or equal to 600"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    issuing: Issuing, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(Invalid, match=why):
        await issuing.request(issuing.source, "bad", **changes)
