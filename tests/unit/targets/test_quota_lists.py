"""Quotas of a target are known before it is used, and a target that does not tell them is used."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from tests.unit.targets.test_cluster_identity import Cluster, connected, until_health
from vnode.api import kinds
from vnode.api.errors import Denied
from vnode.targets import connection
from vnode.targets.cluster_identity import Expected

QUOTA = {
    "metadata": {"name": "few", "namespace": "team", "uid": "q", "resourceVersion": "1"},
    "spec": {"hard": {"pods": "1"}, "scopes": []},
    "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}},
}


class LimitedCluster(Cluster):
    """A target that answers about quotas with `about_quotas`, after `seconds`."""

    def __init__(self, about_quotas, seconds=0.0):
        super().__init__("a")
        self._about_quotas = about_quotas
        self._seconds = seconds

    async def answer(self, request):
        what = request.path.rsplit("/", 1)[1]
        if what in ("resourcequotas", "limitranges") and "watch" not in request.query:
            await asyncio.sleep(self._seconds)
            return self._about_quotas(what)

        return await super().answer(request)


def tells(what):
    items = [QUOTA, {**QUOTA, "spec": "many"}] if what == "resourcequotas" else []
    head = {"kind": "List", "metadata": {"resourceVersion": "1"}}
    return web.json_response({**head, "items": items})


def denies(_what):
    return web.json_response({"code": 403, "reason": "Forbidden"}, status=403)


async def test_what_is_used_is_known_when_the_target_is_first_used():
    cluster = LimitedCluster(tells, 0.2)
    async with connected(cluster, Expected("a")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        quotas, limit_ranges = link.quotas
        assert quotas.kind is kinds.RESOURCE_QUOTAS
        assert list(quotas.store) == ["team/few"]
        assert limit_ranges.synced.is_set()


async def test_a_target_whose_quotas_may_not_be_read_is_used_all_the_same():
    cluster = LimitedCluster(denies)
    async with connected(cluster, Expected("a")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert all(isinstance(informer.failure, Denied) for informer in link.quotas)
        assert not link.failure


async def test_a_target_that_keeps_its_quotas_to_itself_is_used_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(connection, "_QUOTAS", 0.1)
    cluster = LimitedCluster(tells, 5)
    async with connected(cluster, Expected("a")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert not any(informer.answered.is_set() for informer in link.quotas)
