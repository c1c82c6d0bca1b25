from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace

import pytest

from vnode.api.errors import (
    ConfigError,
    Denied,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
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
