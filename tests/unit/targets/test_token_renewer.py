"""Tokens of managed Secrets are renewed ahead of their end, for hours of simulated time."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from tests import background
from tests.apiserver.faults import RequestFault
from tests.apiserver.requests import APIRequest
from tests.apiserver.server import APIServer
from tests.shifted_clock import ShiftedClock
from tests.unsigned_tokens import jwt
from vnode.api import account_users, keys, kinds
from vnode.api.clock import Clock
from vnode.api.errors import Denied, ServerError, Unreachable, VnodeError
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube import endpoint as endpoints
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.kube.informer import Informer
from vnode.targets import expiry, secrets
from vnode.targets.accesses import StoredKubeconfig
from vnode.targets.model import SecretReference
from vnode.targets.token_renewer import TokenRenewer

pytestmark = pytest.mark.looptime

KEY = TargetKey("team", "gpu")
REFERENCE = SecretReference("team", "kubeconfig", "config", "")


class RenewedTarget:
    """A source with one Secret, and the target that it leads to."""

    def __init__(
        self,
        clock: Clock,
        *,
        life: int = 600,
        annotation: str | None = "10m",
        server_clock: Clock | None = None,
    ) -> None:
        self.source, self.target = APIServer("c1", clock), APIServer("c2", server_clock or clock)
        self.target.add(kinds.SERVICE_ACCOUNTS, {"metadata": {"namespace": "team", "name": "c1"}})
        self.asked: list[Endpoint] = []
        self.failures: list[str] = []
        self._clock = clock
        now = int(clock.now().timestamp())
        user = account_users.user_of("team", "c1")
        self.first = jwt(sub=user, iat=now, exp=now + life)
        self.source.add(kinds.SECRETS, self.secret(self.first, annotation))
        self.secrets = Informer(self.source.client("agent"), kinds.SECRETS)
        self.renewer = TokenRenewer(
            self.source.client("agent"), self._stored, self._changed, clock, connect=self._connect
        )

    def secret(self, token: str, annotation: str | None) -> Object:
        text = kubeconfigs.build(ClusterEndpoint("https://c2", None), token, "team")
        annotations = {keys.RENEW_TOKEN: annotation} if annotation else {}
        metadata = {"namespace": "team", "name": "kubeconfig", "annotations": annotations}
        return {
            "metadata": metadata,
            "type": "Opaque",
            "data": {"config": base64.b64encode(text).decode()},
        }

    def _stored(self, key: TargetKey) -> StoredKubeconfig | None:
        secret = self.secrets.store.get(REFERENCE.object_key)
        if key != KEY or secret is None:
            return None

        found = secrets.kubeconfig(secret, REFERENCE)
        return StoredKubeconfig(REFERENCE, secret, found, endpoints.from_kubeconfig(found))

    def _connect(self, endpoint: Endpoint, _name: str) -> Client:
        self.asked.append(endpoint)
        return self.target.client("system:serviceaccount:team:c1")

    def _changed(self, key: TargetKey) -> None:
        self.failures.append(self.renewer.failure(key))

    @property
    def token(self) -> str:
        secret = self.source.find(kinds.SECRETS, "kubeconfig", "team") or {}
        return str(kubeconfigs.token_in(base64.b64decode(secret["data"]["config"])))

    @property
    def issued(self) -> datetime:
        return datetime.fromtimestamp(expiry.claims(self.token)["iat"], self._clock.now().tzinfo)

    def requests(self) -> int:
        return self.target.count("create", kinds.SERVICE_ACCOUNTS, "token")

    def deny(self, error: VnodeError, times: int | None = None) -> RequestFault:
        return self.target.fail(error, verb="create", kind=kinds.SERVICE_ACCOUNTS, times=times)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.secrets.subscribe(lambda _old, _new: self.renewer.wake(KEY))
        async with background.running(self.secrets.run(), self.renewer.run()):
            yield


async def test_a_token_is_renewed_in_time_again_and_again(clock: Clock) -> None:
    env, begun = RenewedTarget(clock), clock.now()
    async with env.running():
        await asyncio.sleep(449)
        assert env.token == env.first
        await asyncio.sleep(32)
        assert 450 <= (env.issued - begun).total_seconds() <= 480
        assert env.asked[0].url == "https://c2"
        await asyncio.sleep(7200)

    assert 7681 / 480 - 1 <= env.requests() <= 7681 / 450 + 1
    assert env.source.count("patch", kinds.SECRETS) == env.requests()
    assert (clock.now() - env.issued).total_seconds() < 480
    assert not env.failures


async def test_nothing_but_the_token_is_changed_in_the_secret(clock: Clock) -> None:
    env = RenewedTarget(clock)
    before = env.source.find(kinds.SECRETS, "kubeconfig", "team") or {}
    async with env.running():
        await asyncio.sleep(500)

    after = env.source.find(kinds.SECRETS, "kubeconfig", "team") or {}
    for secret in (before, after):
        secret["metadata"].pop("resourceVersion")
        secret["data"] = base64.b64decode(secret["data"]["config"])

    assert env.token != env.first
    before["data"] = before["data"].replace(env.first.encode(), env.token.encode())
    assert after == before


async def test_a_secret_that_is_not_managed_is_left_alone(clock: Clock) -> None:
    env = RenewedTarget(clock, annotation=None)
    async with env.running():
        await asyncio.sleep(7200)

    assert env.token == env.first
    assert not env.asked


async def test_a_secret_that_becomes_managed_late_is_renewed_at_once(clock: Clock) -> None:
    env = RenewedTarget(clock, annotation=None)
    async with env.running():
        await asyncio.sleep(550)
        note = {"metadata": {"annotations": {keys.RENEW_TOKEN: "24h"}}}
        await env.source.client().patch(kinds.SECRETS, "kubeconfig", note, "team")
        await asyncio.sleep(1)
        assert expiry.claims(env.token)["exp"] - expiry.claims(env.token)["iat"] == 86400


async def test_an_issuer_that_is_away_when_the_token_is_due_leaves_no_gap(clock: Clock) -> None:
    env = RenewedTarget(clock)
    async with env.running():
        await asyncio.sleep(400)
        env.target.stop()
        await asyncio.sleep(160)
        assert env.token == env.first
        assert env.failures[-1] == "c2: Cannot connect to host"
        env.target.start()
        await asyncio.sleep(39)
        assert env.token != env.first
        assert env.failures[-1] == ""
        attempts = len(env.asked)
        await asyncio.sleep(60)
        assert len(env.asked) == attempts


async def test_a_short_outage_is_not_told(clock: Clock) -> None:
    env = RenewedTarget(clock, life=7200, annotation="24h")
    env.deny(ServerError(503, "", "starting"), times=5)
    async with env.running():
        await asyncio.sleep(6400)

    assert env.requests() == 6
    assert env.token != env.first
    assert not env.failures


async def test_an_account_without_the_right_says_so_at_once_and_asks_rarely(clock: Clock) -> None:
    env = RenewedTarget(clock, life=7200, annotation="24h")
    denied = env.deny(Denied(403, "Forbidden", "cannot create resource serviceaccounts/token"))
    async with env.running():
        await asyncio.sleep(6800)
        assert env.renewer.failure(KEY) == (
            "service account team/c1 may not ask for its own tokens in the target (run vnode "
            "connect again, which allows it): cannot create resource serviceaccounts/token"
        )
        assert len(env.failures) == 1
        assert env.requests() < 20
        denied.clear()
        await asyncio.sleep(301)
        assert env.token != env.first
        assert env.renewer.failure(KEY) == ""


@pytest.mark.parametrize(
    ("verb", "resource", "text"),
    [
        ("create", "serviceaccounts/token", "service account team/c1 may not ask for its own"),
        ("patch", "secrets", "the agent may not write Secret team/kubeconfig (run vnode connect"),
    ],
)
async def test_a_missing_right_is_told_long_before_the_token_is_due(
    clock: Clock, verb: str, resource: str, text: str
) -> None:
    env = RenewedTarget(clock, life=86400, annotation="24h")
    server = env.target if verb == "create" else env.source
    server.refuse(verb, resource)
    async with env.running():
        await asyncio.sleep(1)
        assert text in env.failures[-1]
        await asyncio.sleep(1800)
        assert len(env.failures) == 1
        server.refuse(verb, resource, refused=False)
        await asyncio.sleep(301)
        assert env.failures[-1] == ""
        asked = len(env.asked)
        await asyncio.sleep(3600)
        assert len(env.asked) == asked  # it is known now, until there is another token


@pytest.mark.no_cover
async def test_a_secret_that_keeps_changing_is_asked_about_once_a_minute(clock: Clock) -> None:
    """Its author may have any token in it, and any server that looks at it."""
    env = RenewedTarget(clock, life=86400)
    now, user = int(clock.now().timestamp()), account_users.user_of("team", "c1")
    async with env.running():
        for number in range(600):
            token = jwt(sub=user, iat=now, exp=now + 86400, jti=number)
            annotation = "24h" if number % 2 else None
            secret = env.secret(token, annotation)
            secret["metadata"]["annotations"].setdefault(keys.RENEW_TOKEN, None)
            await env.source.client("tenant").patch(kinds.SECRETS, "kubeconfig", secret, "team")
            await asyncio.sleep(1)

    assert 5 <= len(env.asked) <= 11


async def test_an_agent_that_may_not_write_the_secret_says_so(clock: Clock) -> None:
    env = RenewedTarget(clock)
    denied = Denied(403, "Forbidden", "cannot patch resource secrets")
    env.source.fail(denied, verb="patch", kind=kinds.SECRETS, times=None)
    async with env.running():
        await asyncio.sleep(490)
        assert "may not write Secret team/kubeconfig (run vnode connect" in env.failures[-1]


async def test_a_token_goes_only_into_the_secret_that_it_was_asked_for_by(clock: Clock) -> None:
    """Meanwhile somebody has had the Secret lead to another server, which would get the token."""
    env = RenewedTarget(clock)
    asked = asyncio.Event()

    def note(_request: APIRequest) -> bool:
        asked.set()
        return True

    env.target.fail(None, verb="create", kind=kinds.SERVICE_ACCOUNTS, when=note, delay=5)
    async with env.running():
        await asked.wait()
        moved = kubeconfigs.build(ClusterEndpoint("https://evil", None), env.first, "team")
        data = {"config": base64.b64encode(moved).decode()}
        await env.source.client("tenant").patch(kinds.SECRETS, "kubeconfig", {"data": data}, "team")
        await asyncio.sleep(6)
        assert env.token == env.first
        await asyncio.sleep(30)

    rehearsed, first, second = (endpoint.url for endpoint in env.asked[:3])
    assert (rehearsed, first, second) == ("https://c2", "https://c2", "https://evil")


async def test_a_server_whose_tokens_have_ended_is_asked_rarely(clock: Clock) -> None:
    env = RenewedTarget(clock)
    env.target.remove(kinds.SERVICE_ACCOUNTS, "c1", "team")
    async with env.running():
        await asyncio.sleep(7200)

    assert "the target gives no token: " in env.failures[-1]
    assert env.requests() < 40


@pytest.mark.parametrize("ahead", [-500, -100, 200, 3600])
async def test_the_clock_of_a_target_need_not_be_ours(clock: Clock, ahead: int) -> None:
    env = RenewedTarget(clock, server_clock=ShiftedClock(clock, ahead))
    async with env.running():
        await asyncio.sleep(480)
        for _ in range(8):
            before = env.token
            await asyncio.sleep(481)
            assert env.token != before

    assert env.requests() <= 481 * 9 / 60
    assert not env.failures


async def test_a_clock_that_is_far_behind_is_told_and_costs_a_request_in_minutes(
    clock: Clock,
) -> None:
    env = RenewedTarget(clock, server_clock=ShiftedClock(clock, -3600))
    async with env.running():
        await asyncio.sleep(3600)

    assert "are the clocks of both clusters right?" in env.failures[-1]
    assert env.requests() < 30


async def test_a_term_that_begins_late_renews_what_is_due(clock: Clock) -> None:
    env = RenewedTarget(clock)
    await asyncio.sleep(550)
    async with env.running():
        await asyncio.sleep(1)
        assert env.token != env.first


async def test_an_answer_without_a_token_is_no_token(clock: Clock) -> None:
    env = RenewedTarget(clock)
    env.deny(Unreachable("c2: the answer to a TokenRequest has no token"))
    async with env.running():
        await asyncio.sleep(560)
        assert env.failures == ["c2: the answer to a TokenRequest has no token"]
        assert env.token == env.first
