"""AuthTokenRequests are carried out in a target, step by step, in simulated time."""

from __future__ import annotations

import asyncio
import base64
import itertools
from typing import Any

import pytest

from tests.unit.issuing.issuing_environment import RULES, IssuingEnvironment
from tests.unsigned_tokens import jwt
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.issuing.steps import IssueStep
from vnode.kube import account_tokens, endpoint
from vnode.kube.account_tokens import GrantedToken
from vnode.kube.kubeconfig import Kubeconfig

pytestmark = pytest.mark.looptime
STEPS = [step.value for step in IssueStep]


async def test_a_token_is_made_step_by_step(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        conditions = env.conditions()

    assert list(conditions) == [*STEPS, "Expired"]
    assert all(conditions[step][0] == "True" for step in STEPS), conditions
    assert conditions["Expired"] == ("False", "TokenValid")
    secret = env.secret() or {}
    assert secret["type"] == "Opaque"
    assert objects.controller_uid(secret) == objects.uid(env.find())
    reached = endpoint.from_kubeconfig(
        Kubeconfig.parse(base64.b64decode(secret["data"]["kubeconfig"]))
    )
    assert reached.url == env.link.client.endpoint.url
    assert await reached.authorization() == f"Bearer {env.token()}"
    status = objects.status(env.find())
    assert status["tokenResponse"] == {"kind": "Secret", "namespace": "team", "name": "queue"}
    assert status["clusterUID"] == "cluster-2"
    assert {"expirationTimestamp", "renewAt"} <= status.keys()
    role = env.target.find(kinds.ROLES, "jobs", "work") or {}
    assert role["rules"] == RULES
    [binding] = env.target.all(kinds.ROLE_BINDINGS)
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "queue", "namespace": "queues"}
    ]
    assert binding["roleRef"]["name"] == "jobs"
    assert [objects.name(each) for each in env.target.all(kinds.SECRETS)] == []


async def test_failures_are_retried_ever_more_rarely(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.target.fail(Denied(403, "Forbidden", "no"), verb="create", times=None)
    env.request()
    async with env.running():
        moments, count = [], 0
        for second in range(1000):
            if (now := env.target.count("create")) != count:
                count = now
                moments.append(second)

            await asyncio.sleep(1)

    gaps = [after - before for before, after in itertools.pairwise(moments)]
    assert gaps == pytest.approx([10, 20, 40, 80, 160, 300, 300], abs=2)
    assert env.secret() is None
    assert env.conditions()["ServiceAccountFoundOrCreated"] == ("False", "Forbidden")


async def test_a_secret_of_somebody_else_is_left_alone(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.source.add(
        kinds.SECRETS,
        {"metadata": {"namespace": "team", "name": "queue"}, "type": "Opaque", "data": {}},
    )
    env.request()
    async with env.running():
        assert env.conditions()["ServiceAccountTokenRetrieved"] == ("False", "SecretNotOurs")
        await env.delete()
        await asyncio.sleep(1)

    assert (env.secret() or {})["data"] == {}
    assert env.asked() == 0


async def test_a_secret_that_is_deleted_is_made_again(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        env.source.remove(kinds.SECRETS, "queue", "team")
        await asyncio.sleep(2)
        assert env.secret() is not None


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "system:serviceaccount:kube-system:admin", "iat": 0, "exp": 4e9},
        {"sub": "system:serviceaccount:queues:queue"},
        {"sub": "system:serviceaccount:queues:queue", "iat": 0, "exp": 1},
        {"sub": "system:serviceaccount:queues:queue", "iat": 4e9, "exp": 4e9},
    ],
)
async def test_what_is_no_token_for_the_account_is_not_stored(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, claims: dict[str, Any]
) -> None:
    async def lie(*_args: object) -> GrantedToken:
        return GrantedToken(jwt(**claims), None)

    monkeypatch.setattr(account_tokens, "request", lie)
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        assert env.conditions()["ServiceAccountTokenRetrieved"] == ("False", "TokenRefused")

    assert env.secret() is None


@pytest.mark.parametrize(
    "name", ["../../secrets", "a/b", "%2e%2e", "system:masters", "x" * 253, "a?b", ".."]
)
async def test_hostile_names_lead_nowhere_else(clock: Clock, name: str) -> None:
    env = IssuingEnvironment(clock)
    role = {"namespace": "work", "name": name, "rules": RULES}
    env.request(roles=[role], clusterRoles=None)
    async with env.running():
        pass

    paths = {kinds.ROLES, kinds.ROLE_BINDINGS, kinds.SERVICE_ACCOUNTS, kinds.NAMESPACES}
    assert {request.kind for request in env.target.received()} <= paths
    for request in env.target.received():
        assert request.namespace in ("", "work", "queues")
