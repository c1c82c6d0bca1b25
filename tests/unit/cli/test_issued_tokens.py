"""`vnode get tokens` and `vnode doctor` say how AuthTokenRequests stand, and what they wait for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.objects import Object
from vnode.cli.completion import candidates
from vnode.cli.doctor import examining, token_checks
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level
from vnode.cli.get import resources, token_cells
from vnode.cli.get.listing import Listing, ListRequest
from vnode.insight import token_standing
from vnode.issuing import steps
from vnode.issuing.attempt import SECRETS_ROLE
from vnode.issuing.steps import IssueProgress, IssueStep, StepFailed

pytestmark = pytest.mark.looptime

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
BINDING: Object = {
    "roleRef": {"name": token_checks.ROLE},
    "subjects": [{"kind": "ServiceAccount", "name": "vnode"}],
}


def request(
    failed: StepFailed | None = None,
    ends: timedelta | None = HOUR,
    renewal: timedelta = HOUR * 0.75,
    now: datetime = NOW,
    **more: Any,
) -> Object:
    """Return a request whose steps were done up to the one that has failed."""
    metadata: Object = {"name": "queue", "namespace": "team", "uid": "u", **more}
    spec = {
        "targetRef": {"kind": "ClusterTarget", "name": "east"},
        "serviceAccountName": "queue",
        "serviceAccountNamespace": "queues",
    }
    obj: Object = {"metadata": metadata, "spec": spec}
    progress = IssueProgress()
    for step in IssueStep:
        if failed is not None and step is failed.step:
            progress.failed(failed)
            break

        progress.done(step, "Done", "done")

    if ends is not None:
        progress.ends, progress.renew_at = now + ends, now + renewal
        progress.note_end(now)

    return {**obj, "status": steps.changed_status(obj, progress, now)}


def unseen(**metadata: Any) -> Object:
    return {**request(**metadata), "status": {}}


FORBIDDEN = StepFailed(IssueStep.ROLES, "Forbidden", "may not make roles")


@pytest.mark.parametrize(
    ("obj", "is_ready", "reason", "step"),
    [
        (request(), True, "Done", ""),
        (unseen(), False, token_standing.UNSEEN, IssueStep.VALID.value),
        (request(FORBIDDEN, None), False, "Forbidden", IssueStep.ROLES.value),
        (request(FORBIDDEN), True, "Forbidden", IssueStep.ROLES.value),
        (request(FORBIDDEN, -HOUR), False, "Forbidden", IssueStep.ROLES.value),
        (request(None, -HOUR), False, "TokenEnded", steps.EXPIRED),
        (request(deletionTimestamp="2026-01-02T03:04:00Z"), False, token_standing.REVOKING, ""),
    ],
)
def test_a_request_is_ready_with_a_good_token_and_says_what_is_not_done(
    obj: Object, is_ready: bool, reason: str, step: str
) -> None:
    standing = token_standing.read(obj, NOW)
    assert (standing.is_ready, standing.reason, standing.step) == (is_ready, reason, step)


def test_cells_tell_the_time_that_is_left() -> None:
    obj = request()
    assert token_cells.expires(obj, NOW) == "in 60m"
    assert token_cells.renewal(obj, NOW) == "in 45m"
    later = NOW + 2 * HOUR
    assert (token_cells.expires(obj, later), token_cells.renewal(obj, later)) == ("ended", "due")
    assert token_cells.ready(obj, later) == "False"
    assert token_cells.expires(unseen(), NOW) == token_cells.ready(unseen(), NOW) == ""


async def test_requests_are_listed(clock: Clock) -> None:
    server = APIServer("c1", clock)
    days, now = timedelta(days=1), SystemClock().now()
    long = request(ends=100 * days, renewal=50 * days, now=now)
    server.add(kinds.AUTH_TOKEN_REQUESTS, long)
    server.add(kinds.AUTH_TOKEN_REQUESTS, unseen(name="other", namespace="a"))
    lines: list[str] = []
    asked = ListRequest(resources.view(resources.ALIASES["atr"]), (), None, "table")
    await Listing(server.client(), asked, lines.append).once()
    heading, other, queue = [line.split() for line in lines]
    titles = "NAMESPACE NAME TARGET ACCOUNT READY REASON EXPIRES RENEWAL AGE"
    assert heading == titles.split()
    of_east = ["clustertarget/east", "queues/queue"]
    assert other[:8] == ["a", "other", *of_east, *["<none>"] * 4]
    assert queue[:10] == ["team", "queue", *of_east, "True", "Done", "in", "99d", "in", "49d"]


def test_a_profile_is_a_target_too() -> None:
    obj = unseen()
    obj["spec"] = {"targetClusterProfile": {"namespace": "fleet", "name": "berlin"}}
    assert token_cells.target(obj) == "clusterprofile/fleet/berlin"
    assert [item.value for item in candidates(["get", "to"])] == ["tokens"]


def check(*requests: Object, issuers: list[Object] | None = None, **more: Any) -> list[Finding]:
    facts = ClusterFacts("here", NOW, token_requests=list(requests), issuers=issuers, **more)
    return list(token_checks.check(facts))


def test_without_requests_nothing_is_said_unless_they_would_be_issued() -> None:
    assert check(issuers=[]) == check() == []
    [found] = check(issuers=[BINDING])
    assert found.level is Level.OK
    unknown = ClusterFacts("here", NOW, token_requests=None, issuers=[BINDING])
    assert [found.level for found in token_checks.check(unknown)] == [Level.SKIP]
    assert not list(token_checks.check(ClusterFacts("here", NOW, unreachable="refused")))


def test_requests_that_nobody_issues_are_a_failure() -> None:
    created = objects.timestamp(NOW - HOUR)
    found = check(unseen(creationTimestamp=created), issuers=[{**BINDING, "subjects": []}])
    assert [each.level for each in found] == [Level.FAIL, Level.FAIL]
    assert all("issuing.enabled" in each.cure for each in found)
    found = check(request(), issuers=[])
    assert [each.level for each in found] == [Level.WARN, Level.OK]
    young = unseen(creationTimestamp=objects.timestamp(NOW))
    assert [each.level for each in check(young, issuers=[BINDING])] == [Level.OK, Level.WARN]
    assert [each.level for each in check(request())] == [Level.SKIP, Level.OK]


@pytest.mark.parametrize(
    ("obj", "level", "text", "cure"),
    [
        (request(), Level.OK, "vnode renews it on 2026-01-02 03:49 UTC", ""),
        (request(FORBIDDEN, None), Level.FAIL, "Forbidden: may not", token_checks.TARGET_ROLE),
        (request(FORBIDDEN), Level.WARN, "the token that there is ends on", "in the target"),
        (request(renewal=-HOUR), Level.WARN, "has not been renewed since", "its log"),
        (request(None, -HOUR), Level.FAIL, "TokenEnded: the token expired", "log of the agent"),
        (
            request(StepFailed(IssueStep.TOKEN, "Forbidden", f"bind {SECRETS_ROLE}")),
            Level.WARN,
            "Forbidden: bind",
            IN_THE_TEXT,
        ),
        (
            request(StepFailed(IssueStep.VALID, "AuthorMayNot", "alice may not"), None),
            Level.FAIL,
            "alice may not",
            "give its author that right",
        ),
        (
            request(deletionTimestamp="2026-01-02T03:04:00Z"),
            Level.WARN,
            "not revoked yet",
            "with issuing turned on",
        ),
    ],
)
def test_what_a_request_waits_for_is_found_with_a_cure(
    obj: Object, level: Level, text: str, cure: str
) -> None:
    _all, found = check(obj, issuers=[BINDING])
    assert (found.check, found.level) == ("token team/queue", level)
    assert text in found.text
    assert cure in found.cure


def test_a_revocation_that_waits_names_its_cure_itself() -> None:
    obj = request(deletionTimestamp="2026-01-02T03:04:00Z")
    progress = IssueProgress({steps.REVOKED: (False, "TargetUnreachable", "remove the finalizer")})
    obj["status"] |= steps.changed_status(obj, progress, NOW)
    _all, found = check(obj, issuers=[BINDING])
    assert (found.level, found.cure) == (Level.FAIL, IN_THE_TEXT)
    assert "TargetUnreachable: remove the finalizer" in found.text


async def test_requests_and_bindings_are_read(clock: Clock) -> None:
    server = APIServer("c1", clock)
    server.add(kinds.AUTH_TOKEN_REQUESTS, request(finalizers=[keys.ISSUED_TOKEN]))
    server.add(kinds.CLUSTER_ROLE_BINDINGS, {**BINDING, "metadata": {"name": "vnode-issuing"}})
    client = server.client()
    read = await examining.or_none(client.list(kinds.AUTH_TOKEN_REQUESTS))
    issuers = await examining.or_none(client.list(kinds.CLUSTER_ROLE_BINDINGS))
    facts = ClusterFacts("here", NOW, token_requests=read, issuers=issuers)
    assert [found.level for found in token_checks.check(facts)] == [Level.OK, Level.OK]
