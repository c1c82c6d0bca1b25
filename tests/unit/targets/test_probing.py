from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from vnode.api.clock import SystemClock
from vnode.api.errors import (
    ConfigError,
    Denied,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from vnode.runtime.links import Health, Link, TargetKey
from vnode.targets import probing


@pytest.mark.parametrize(
    ("error", "reason", "cure"),
    [
        (Denied(401, "Unauthorized", "Unauthorized"), "Unauthorized", "run vnode connect again"),
        (Denied(403, "Forbidden", "no list"), "Forbidden", "no list; create a Source .* 'team'"),
        (
            NotFound(404, "NotFound", 'namespaces "team" not found'),
            "NamespaceNotFound",
            "create it",
        ),
        (NotFound(404, "", "404 page not found"), "NotInstalled", "run vnode install"),
        (Unreachable("c2: refused"), "Unreachable", "c2: refused; see that its API server"),
        (ConfigError("the plugin gave no token"), "Invalid", "the plugin gave no token"),
        (ServerError(503, "", "etcd is away"), "Failing", "etcd is away"),
        (TooManyRequests(429, "", "slow down"), "Failing", "slow down"),
    ],
)
def test_each_obstacle_has_a_reason_and_a_cure(error, reason, cure):
    found, message = probing.explain(error, "team")
    assert found == reason
    assert re.search(cure, message)


def test_a_cluster_target_is_told_of_a_cluster_source():
    _reason, message = probing.explain(Denied(403, "Forbidden", "no"), "")
    assert "create a ClusterSource there for" in message


class Target:
    """Answers like a target in some state: an error, or nothing, for each path."""

    def __init__(self, **errors):
        self.errors, self.paths = errors, []

    def answer(self, what):
        self.paths.append(what)
        if error := self.errors.get(what):
            raise error

    async def get(self, kind, name):
        self.answer("summary")

    async def request(self, method, path, **_rest):
        self.answer("dry_run" if method == "POST" else "discovery")


FORBIDDEN = Denied(403, "Forbidden", "no")
ABSENT = NotFound(404, "", "404 page not found")


async def test_a_target_that_has_no_summary_yet_is_fine():
    missing = NotFound(404, "NotFound", 'clustersummaries "singleton" not found')
    target = Target(summary=missing)
    await probing.probe(target, "team")
    assert target.paths == ["summary", "dry_run"]


async def test_a_cluster_target_asks_for_no_namespace():
    target = Target()
    await probing.probe(target, "")
    assert target.paths == ["summary"]


@pytest.mark.parametrize("asked", ["summary", "dry_run"])
async def test_a_refusal_is_about_rights_only_where_the_kinds_are_there(asked):
    with pytest.raises(Denied):
        await probing.probe(Target(**{asked: FORBIDDEN}), "team")

    with pytest.raises(NotFound):
        await probing.probe(Target(**{asked: FORBIDDEN}, discovery=ABSENT), "team")


async def test_whoever_is_not_known_is_not_asked_for_more():
    target = Target(summary=Denied(401, "Unauthorized", "no"))
    with pytest.raises(Denied):
        await probing.probe(target, "team")

    assert target.paths == ["summary"]


@pytest.mark.parametrize(
    ("synced", "summary", "healthy", "reason"),
    [
        (False, None, False, "Connecting"),
        (True, None, False, "NoSummary"),
        (True, {"capacity": {}}, True, "Connected"),
    ],
)
def test_a_target_is_of_use_once_it_has_said_what_it_has(synced, summary, healthy, reason):
    event = asyncio.Event()
    if synced:
        event.set()

    link = SimpleNamespace(synced=synced, summaries=SimpleNamespace(synced=event), summary=summary)
    assert probing.verdict(link)[:2] == (healthy, reason)


def informer():
    """Synced; `retried` counts how often it was told that its server may be back."""
    synced = asyncio.Event()
    synced.set()
    found = SimpleNamespace(synced=synced, failure=None, store={"singleton": {"capacity": {}}})
    found.retried = 0

    def retry_now():
        found.retried += 1

    found.retry_now = retry_now
    return found


@asynccontextmanager
async def probed(target):
    """A link to that target, whose health a prober keeps; healthy at first."""
    clock = SystemClock()
    link = Link(
        TargetKey("", "c2"),
        target,
        chaperons=informer(),
        summaries=informer(),
        health=Health(False, "Connecting", "", clock.now()),
    )
    task = asyncio.create_task(probing.Prober(link, clock).run())
    try:
        await asyncio.sleep(0.1)
        assert link.health.healthy
        yield link
    finally:
        task.cancel()


PASSING = [
    ServerError(500, "InternalError", "etcd is away"),
    TooManyRequests(429, "TooManyRequests", "slow down"),
    Unreachable("no answer"),
    Denied(403, "Forbidden", 'cannot get x at the cluster scope: RBAC: clusterrole "c" not found'),
]


@pytest.mark.looptime
@pytest.mark.parametrize("error", PASSING)
async def test_one_failure_that_may_pass_does_not_make_a_target_unhealthy(error):
    target = Target()
    async with probed(target) as link:
        target.errors["summary"] = error
        await asyncio.sleep(probing.PERIOD)
        assert len(target.paths) >= 2
        assert link.health.healthy
        del target.errors["summary"]
        await asyncio.sleep(3 * probing.PERIOD)
        assert link.health.healthy


@pytest.mark.looptime
@pytest.mark.parametrize("error", PASSING)
async def test_two_failures_in_a_row_make_a_target_unhealthy(error):
    target = Target()
    async with probed(target) as link:
        target.errors["summary"] = error
        await asyncio.sleep(probing.PERIOD + 3)
        assert not link.health.healthy


@pytest.mark.looptime
async def test_a_refusal_makes_a_target_unhealthy_at_once():
    target = Target()
    async with probed(target) as link:
        target.errors["summary"] = Denied(401, "Unauthorized", "no")
        await asyncio.sleep(probing.PERIOD)
        assert link.health.reason == "Unauthorized"


@pytest.mark.looptime
async def test_a_target_that_answers_again_is_of_use_once_its_chaperons_are_followed_again():
    target = Target()
    async with probed(target) as link:
        link.chaperons.failure = Unreachable("watch broke")
        await asyncio.sleep(probing.PERIOD + 3)
        assert not link.health.healthy
        retried = link.chaperons.retried
        assert retried
        link.chaperons.failure = None
        await asyncio.sleep(3)
        assert link.health.healthy
