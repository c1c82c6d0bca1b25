"""Issued tokens on real API servers: renewed in time, and revoked once their cluster answers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from tests import background, kit
from tests.fleets import TARGET
from tests.integration.issuing import JOBS, REQUEST, Issuing, issued, to_issue
from tests.integration.issuing_fixtures import unled
from tests.kit import Fleet
from tests.rights import until_may
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.runtime.link import Link
from vnode.runtime.link_health import UNREACHABLE
from vnode.targets import expiry
from vnode.targets.probing import Prober

__all__ = ["unled"]


def at_latest(_token: str) -> float:
    """Spread no renewals: a token lives as long as it may."""
    return 0.0


def token(secret: Object) -> str:
    return base64.b64decode(secret["data"]["token"]).decode()


def moment(secret: Object, *, before_end: int = 0) -> str:
    """Return when the token of a Secret ends, or so many seconds before, as a status says it."""
    end = expiry.claims(token(secret))["exp"] - before_end
    return objects.timestamp(datetime.fromtimestamp(end, UTC))


async def until_in_status(env: Issuing, secret: Object) -> Object:
    """Wait until the status of the request names the end of that token, and return it."""
    found = await kit.until_one(
        *(env.source, kinds.AUTH_TOKEN_REQUESTS, REQUEST, env.namespace),
        lambda obj: objects.status(obj).get("expirationTimestamp") == moment(secret),
    )
    return objects.status(found)


def assert_valid_until(status: Object, end: str) -> None:
    expired = objects.condition({"status": status}, "Expired") or {}
    assert (expired["status"], expired["reason"]) == ("False", "TokenValid")
    assert expired["message"] == f"the token expires at {end}"


async def test_a_token_is_renewed_at_four_fifths_of_its_life_and_the_old_one_is_still_good(
    unled: Issuing,
) -> None:
    """The limit of the configuration is raised meanwhile, so the new token ends much later."""
    await unled.allow_alice([*to_issue(unled), *JOBS])
    async with unled.leading(longest=600, chance=at_latest):
        await unled.request(unled.alice, expirationSeconds=1200)
        assert (await unled.until("ServiceAccountTokenRetrieved"))["status"] == "True"
        old = await unled.secret()
        status = await until_in_status(unled, old)
        assert status["renewAt"] == moment(old, before_end=120)
        assert_valid_until(status, moment(old))

    place = kinds.SECRETS, REQUEST, unled.namespace
    async with unled.leading(ahead=400, chance=at_latest):
        spoilt = {"data": {"kubeconfig": base64.b64encode(b"spoilt").decode()}}
        await unled.source.patch(*place[:2], spoilt, unled.namespace)
        # The leader mends it with the token of old, which is not due yet.
        await kit.until_one(unled.source, *place, lambda obj: obj["data"] == old["data"])

    async with unled.leading(ahead=485, chance=at_latest):
        new = await kit.until_one(unled.source, *place, lambda obj: token(obj) != token(old))
        status = await until_in_status(unled, new)
        assert status["renewAt"] == moment(new, before_end=240)
        assert_valid_until(status, moment(new))
        assert moment(new) > moment(old)
        user = f"system:serviceaccount:{unled.queues}:queue"
        await until_may(unled.target, user, f"list batch/jobs {unled.namespace}")
        for secret in (old, new):
            async with issued(secret) as queue:
                assert await queue.list(kinds.JOBS, unled.namespace) == []


@asynccontextmanager
async def cut_off(fleet: Fleet, cluster: str) -> AsyncIterator[None]:
    """Cut a cluster off; inside, nobody reaches it."""
    await asyncio.to_thread(fleet.run, "partition", cluster)
    try:
        yield
    finally:
        await asyncio.to_thread(fleet.run, "heal", cluster)


async def until_unreachable(link: Link) -> None:
    changed = asyncio.Event()
    link.on_health(changed.set)
    async with asyncio.timeout(kit.PATIENCE):
        while link.health.reason != UNREACHABLE:
            changed.clear()
            await changed.wait()


async def made(env: Issuing, uid: str) -> set[str]:
    """Return the kinds and names, in the target, of what was made for a request, but namespaces."""
    return {
        f"{kind.kind} {objects.key(obj)}"
        for kind in (
            kinds.SERVICE_ACCOUNTS,
            kinds.ROLES,
            kinds.ROLE_BINDINGS,
            kinds.CLUSTER_ROLES,
            kinds.CLUSTER_ROLE_BINDINGS,
        )
        for obj in await env.target.list(kind, label_selector=f"{keys.ISSUED}={uid}")
    }


async def test_a_deleted_request_waits_for_its_cluster_and_then_takes_all_of_it_away(
    unled: Issuing,
) -> None:
    await unled.allow_alice([*to_issue(unled), *JOBS])
    async with unled.leading() as link:
        prober = Prober(link, SystemClock())
        async with background.running(prober.run()):
            all_jobs = {"name": f"{unled.namespace}-jobs-everywhere", "rules": JOBS}
            uid = objects.uid(await unled.request(unled.alice, clusterRoles=[all_jobs]))
            assert (await unled.until("ServiceAccountTokenRetrieved"))["status"] == "True"
            assert len(await made(unled, uid)) == 5
            async with cut_off(unled.fleet, TARGET):
                prober.probe_now()
                await until_unreachable(link)
                await unled.alice.delete(kinds.AUTH_TOKEN_REQUESTS, REQUEST, unled.namespace)
                condition = await unled.until("Revoked")
                assert (condition["status"], condition["reason"]) == ("False", "TargetUnreachable")
                assert (
                    "does not answer: the permissions there are revoked later"
                    in (condition["message"])
                )
                assert f"remove finalizer {keys.ISSUED_TOKEN}" in condition["message"]
                assert keys.ISSUED_TOKEN in objects.finalizers(await unled.found())
                with pytest.raises(NotFound):
                    await unled.secret()

            prober.probe_now()
            await unled.until_deleted()
            assert await made(unled, uid) == set()
