"""Quotas of a target are known before it is used, and a target that does not tell them is used."""

from __future__ import annotations

import pytest

from tests.unit.targets.served_clusters import ServedCluster, connected, until_health
from vnode.api import kinds
from vnode.api.errors import Denied
from vnode.targets import connection
from vnode.targets.cluster_identity import Expected

QUOTA = {
    "metadata": {"name": "few", "namespace": "team", "uid": "q", "resourceVersion": "1"},
    "spec": {"hard": {"pods": "1"}, "scopes": []},
    "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}},
}


LISTS = (kinds.RESOURCE_QUOTAS, kinds.LIMIT_RANGES)


@pytest.fixture
async def cluster():
    """Return a target that lists two quotas, one of which is malformed."""
    cluster = ServedCluster("a")
    cluster.server.spoil = with_bad_quota
    cluster.server.add(kinds.RESOURCE_QUOTAS, QUOTA)
    return cluster


def with_bad_quota(request, answer):
    if (request.verb, request.kind) != ("list", kinds.RESOURCE_QUOTAS):
        return answer

    return {**answer, "items": [*answer["items"], {**QUOTA, "spec": "many"}]}


def hinder(cluster, error=None, delay=0.0):
    """Have lists of quotas and limits fail, or be late."""
    for kind in LISTS:
        cluster.server.fail(error, verb="list", kind=kind, delay=delay, times=None)


async def test_what_is_used_is_known_when_the_target_is_first_used(cluster):
    hinder(cluster, delay=0.2)
    async with connected(cluster, Expected("a")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        quotas, limit_ranges = link.quotas
        assert quotas.kind is kinds.RESOURCE_QUOTAS
        assert list(quotas.store) == ["team/few"]
        assert limit_ranges.synced.is_set()


async def test_a_target_whose_quotas_may_not_be_read_is_used_all_the_same(cluster):
    hinder(cluster, Denied(403, "Forbidden", "no"))
    async with connected(cluster, Expected("a")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert all(isinstance(informer.failure, Denied) for informer in link.quotas)
        assert not link.failure


async def test_a_target_that_keeps_its_quotas_to_itself_is_used_after_a_moment(
    cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "_QUOTAS", 0.1)
    hinder(cluster, delay=5)
    async with connected(cluster, Expected("a")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert not any(informer.answered.is_set() for informer in link.quotas)
