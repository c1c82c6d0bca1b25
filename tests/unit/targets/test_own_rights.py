"""A Target that is the source itself works without rights for it, and says which are missing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from tests.unit.targets.served_clusters import KEY, ServedCluster, connected, until_health
from vnode.api import kinds
from vnode.api.errors import ServerError
from vnode.targets import connection, own_rights, target_conditions
from vnode.targets.cluster_identity import Expected
from vnode.targets.model import TargetSpec

SELF = TargetSpec(KEY, None, "")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = {"metadata": {"name": "c2", "namespace": "team", "generation": 1}}
MISSING = ("list resourcequotas", "get pods/log", "create pods/exec")


class Own:
    """The source's own cluster, whose administrator gives the agent rights or takes them away."""

    def __init__(self) -> None:
        self.cluster = ServedCluster("us")
        self.allowed = False
        self.asked = []
        self.cluster.server.spoil = self._answer

    def _answer(self, request, answer):
        if request.kind is not kinds.SELF_SUBJECT_ACCESS_REVIEWS:
            return answer

        self.asked.append(request.body["spec"]["resourceAttributes"])
        return {**answer, "status": {"allowed": self.allowed}}

    @property
    def quota_lists(self):
        return self.cluster.server.count("list", kinds.RESOURCE_QUOTAS)


@pytest.fixture
async def own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_rights, "PERIOD", 0.05)
    return Own()


def told(link):
    """Return the condition of the Target, which has one."""
    condition = target_conditions.self_target(TARGET, link, NOW)
    assert condition is not None
    return condition


async def until_lacking(link, wanted):
    heard = asyncio.Event()
    link.on_health(lambda: heard.set() if link.lacking_rights == wanted else None)
    if link.lacking_rights != wanted:
        await heard.wait()


async def test_pods_run_without_the_rights_and_no_quota_is_asked_for(own):
    async with connected(own.cluster, Expected("us"), SELF) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert link.lacking_rights == MISSING
        assert own.quota_lists == 0
        condition = told(link)
        assert (condition["status"], condition["reason"]) == ("False", "NotAllowed")
        assert "may not list resourcequotas, get pods/log, create pods/exec" in condition["message"]
        assert "vnode install --self-targets" in condition["message"]
        assert "selfTargets.enabled=true" in condition["message"]


async def test_rights_that_are_given_later_are_noticed(own):
    async with connected(own.cluster, Expected("us"), SELF) as (_connection, added, _running):
        link = await added.get()
        await until_lacking(link, MISSING)
        own.allowed = True
        await until_lacking(link, ())
        for informer in link.quotas:
            await informer.synced.wait()

        condition = told(link)
        assert (condition["status"], condition["reason"]) == ("True", "Allowed")


async def test_with_the_rights_quotas_are_known_when_it_is_first_used(own):
    own.allowed = True
    async with connected(own.cluster, Expected("us"), SELF) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert own.quota_lists == 1
        assert {each["namespace"] for each in own.asked} == {"team"}


async def test_a_question_without_an_answer_tells_nothing(own, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "_QUOTAS", 0.1)
    kind = kinds.SELF_SUBJECT_ACCESS_REVIEWS
    own.cluster.server.fail(ServerError(503, "", "away"), verb="create", kind=kind, times=None)
    async with connected(own.cluster, Expected("us"), SELF) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert link.lacking_rights is None
        assert target_conditions.self_target(TARGET, link, NOW) is None


async def test_another_cluster_is_not_asked():
    cluster = ServedCluster("a")
    async with connected(cluster, Expected("a")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert cluster.server.count("create", kinds.SELF_SUBJECT_ACCESS_REVIEWS) == 0
        assert target_conditions.self_target(TARGET, link, NOW) is None
