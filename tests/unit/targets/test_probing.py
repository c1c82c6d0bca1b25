from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.errors import (
    ConfigError,
    Denied,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.targets import probing

pytestmark = pytest.mark.looptime


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
        (
            Unreachable(
                "c2: Cannot connect to host 192.0.2.1:6443 ssl:True [SSLCertVerificationError: (1, "
                "'[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local "
                "issuer certificate (_ssl.c:1006)')]"
            ),
            "Unreachable",
            r"\(unable to get local issuer certificate\): if the target has a new authority",
        ),
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


FORBIDDEN = Denied(403, "Forbidden", "no")
ABSENT = NotFound(404, "", "404 page not found")


class Target:
    """A target, its link, and the requests of probes."""

    def __init__(self, clock):
        self.server, self.clock = APIServer("c2", clock), clock
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "team"}})
        self.server.add(
            kinds.CLUSTER_SUMMARIES, {"metadata": {"name": keys.SUMMARY_NAME}, "capacity": {}}
        )
        self.link = links.link_to(self.server, TargetKey("", "c2"), Identity("c1", "us"), clock)

    def fail(self, what, error):
        return self.server.fail(error, when=lambda request: asked(request) == what, times=None)

    @property
    def paths(self):
        return [what for request in self.server.requests if (what := asked(request))]

    async def probe(self, namespace):
        await probing.probe(self.server.client(), namespace)

    @asynccontextmanager
    async def probed(self):
        """Run a prober of the link, which is healthy at first."""
        links.set_healthy(self.link, False, self.clock)
        prober = probing.Prober(self.link, self.clock)
        async with links.connected(self.link), background.running(prober.run()):
            await asyncio.sleep(0.1)
            assert self.link.health.healthy
            yield self.link


def asked(request):
    """Name what a probe asks by that request; return None for a request of an informer."""
    if request.verb == "create":
        return "dry_run"

    if request.verb == "get":
        return "summary" if request.kind else "discovery"

    return None  # the informers'


@pytest.fixture
async def target(clock):
    return Target(clock)


async def test_a_target_that_has_no_summary_yet_is_fine(target):
    target.server.remove(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    await target.probe("team")
    assert target.paths == ["summary", "dry_run"]
    assert target.server.all(kinds.POD_CHAPERONS) == []


async def test_a_namespace_that_is_not_there_is_noticed(target):
    with pytest.raises(NotFound, match="absent"):
        await target.probe("absent")


async def test_a_cluster_target_asks_for_no_namespace(target):
    await target.probe("")
    assert target.paths == ["summary"]


@pytest.mark.parametrize("what", ["summary", "dry_run"])
async def test_a_refusal_is_about_rights_only_where_the_kinds_are_there(target, what):
    target.fail(what, FORBIDDEN)
    with pytest.raises(Denied):
        await target.probe("team")

    target.fail("discovery", ABSENT)
    with pytest.raises(NotFound):
        await target.probe("team")


async def test_whoever_is_not_known_is_not_asked_for_more(target):
    target.fail("summary", Denied(401, "Unauthorized", "no"))
    with pytest.raises(Denied):
        await target.probe("team")

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

    link = SimpleNamespace(
        synced=synced,
        summaries=SimpleNamespace(synced=event),
        summary=summary,
        awaits_quotas=False,
    )
    assert probing.verdict(link)[:2] == (healthy, reason)


PASSING = [
    ServerError(500, "InternalError", "etcd is away"),
    TooManyRequests(429, "TooManyRequests", "slow down"),
    Unreachable("no answer"),
    Denied(403, "Forbidden", 'cannot get x at the cluster scope: RBAC: clusterrole "c" not found'),
]


@pytest.mark.parametrize("error", PASSING)
async def test_one_failure_that_may_pass_does_not_make_a_target_unhealthy(target, error):
    async with target.probed() as link:
        fault = target.fail("summary", error)
        await asyncio.sleep(probing.PERIOD)
        assert fault.met
        assert link.health.healthy
        fault.clear()
        await asyncio.sleep(3 * probing.PERIOD)
        assert link.health.healthy


@pytest.mark.parametrize("error", [e for e in PASSING if not isinstance(e, TooManyRequests)])
async def test_two_failures_in_a_row_make_a_target_unhealthy(target, error):
    async with target.probed() as link:
        target.fail("summary", error)
        await asyncio.sleep(probing.PERIOD + 3)
        assert not link.health.healthy


async def test_a_target_that_says_slow_down_is_unhealthy_if_it_says_nothing_else(target):
    async with target.probed() as link:
        fault = target.fail("summary", TooManyRequests(429, "TooManyRequests", "slow down"))
        await asyncio.sleep(probing.PUSHED_BACK - 1)
        assert fault.met > 10
        assert link.health.healthy
        assert link.probed_at == pytest.approx(target.clock.monotonic(), abs=3)
        await asyncio.sleep(probing.PERIOD + 3)
        assert (link.health.healthy, link.health.reason) == (False, "Failing")
        fault.clear()
        await asyncio.sleep(probing.PERIOD)
        assert link.health.healthy


async def test_a_probe_waits_for_no_pace(target):
    async with target.probed() as link:
        error = TooManyRequests(429, "TooManyRequests", "slow down")
        error.retry_after = 60.0
        link.client.pacer.push_back(error)
        target.fail("summary", Denied(401, "Unauthorized", "no"))
        await asyncio.sleep(probing.PERIOD)
        assert link.health.reason == "Unauthorized"


async def test_a_refusal_makes_a_target_unhealthy_at_once(target):
    async with target.probed() as link:
        target.fail("summary", Denied(401, "Unauthorized", "no"))
        await asyncio.sleep(probing.PERIOD)
        assert link.health.reason == "Unauthorized"


async def test_a_frozen_target_is_unhealthy_and_is_back_soon(target):
    async with target.probed() as link:
        target.server.freeze()
        await asyncio.sleep(4 * probing.PERIOD)
        assert link.health.reason == "Unreachable"
        target.server.thaw()
        await asyncio.sleep(probing.PERIOD)
        assert link.health.healthy


async def test_a_target_that_answers_again_is_of_use_once_its_chaperons_are_followed_again(target):
    async with target.probed() as link:
        broken = target.server.fail(
            Unreachable("watch broke"), verb="watch", kind=kinds.POD_CHAPERONS, times=None
        )
        target.server.cut_watches()
        await asyncio.sleep(probing.PERIOD + 5)
        assert not link.health.healthy
        assert broken.met > 3
        broken.clear()
        await asyncio.sleep(6)
        assert link.health.healthy


async def test_what_is_allowed_is_asked_each_minute_and_at_once_after_a_failure(clock, target):
    team = links.link_to(target.server, TargetKey("team", "c2"), Identity("c1", "us"), clock)
    links.set_healthy(team, False, clock)
    prober = probing.Prober(team, clock)
    async with links.connected(team), background.running(prober.run()):
        await asyncio.sleep(0.1)
        assert team.health.healthy
        await asyncio.sleep(probing.RIGHTS_PERIOD - 1)
        assert target.paths == ["summary", "dry_run", *["summary"] * 5]
        await asyncio.sleep(probing.PERIOD)
        assert target.paths[7:] == ["summary", "dry_run"]

        fault = target.fail("summary", Unreachable("no answer"))
        await asyncio.sleep(probing.PERIOD)
        assert fault.met
        fault.clear()
        before = len(target.paths)
        await asyncio.sleep(probing.PERIOD)
        assert target.paths[before:].count("dry_run") == 1


@pytest.mark.parametrize("error", [FORBIDDEN, NotFound(404, "NotFound", 'namespaces "team"')])
async def test_a_refused_candidate_has_the_target_asked_at_once(clock, target, error):
    team = links.link_to(target.server, TargetKey("team", "c2"), Identity("c1", "us"), clock)
    links.set_healthy(team, False, clock)
    prober = probing.Prober(team, clock)
    team.on_doubt(prober.probe_now)
    async with links.connected(team), background.running(prober.run()):
        await asyncio.sleep(1)
        target.fail("dry_run", error)
        await asyncio.sleep(2 * probing.PERIOD)
        assert team.health.healthy
        team.doubt()
        await asyncio.sleep(0.1)
        assert not team.health.healthy


async def test_a_target_that_keeps_calling_for_probes_gets_a_few(clock, target):
    links.set_healthy(target.link, False, clock)
    prober = probing.Prober(target.link, clock)
    async with links.connected(target.link), background.running(prober.run()):
        for _ in range(1000):
            prober.probe_now()
            await asyncio.sleep(0.02)

        assert 5 < target.paths.count("summary") <= 5 + 20 / 2 + 1
