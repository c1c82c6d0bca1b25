"""An agent that starts again leaves virtual nodes as they are, until it knows what has changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.kept_nodes import (
    SUMMARY,
    FixedTargets,
    capacity,
    connected,
    ready,
    running,
    show,
    target,
    until,
)
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.nodes import missing_links
from vnode.runtime.link_health import CONNECTING, LinkHealth
from vnode.runtime.links import Links

__all__ = ["target"]


async def test_a_restart_changes_nothing_until_the_target_had_time_to_connect(
    client: Client, target: TargetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    links, _link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        before = await until(client, target, lambda node: ready(node) == "True")

    monkeypatch.setattr(missing_links, "RECONNECT_TIMEOUT", 1.5)
    async with running(client, Links(), FixedTargets(target)):
        await asyncio.sleep(0.7)
        assert ready(await client.get(kinds.NODES, target.node_name)) == "True"
        node = await until(client, target, lambda node: ready(node) == "False")

    condition = objects.condition(node, "Ready") or {}
    assert condition["reason"] == "TargetNotConnected"
    assert "kubectl describe target" in condition["message"]
    assert capacity(node) == capacity(before)
    assert objects.labels(node) == objects.labels(before)


async def test_a_restart_changes_nothing_until_the_target_was_asked(
    client: Client, target: TargetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen with fifty Targets: some Nodes were not ready for a moment at each start of the agent,
    because what the target has was read before anybody had probed it."""
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")

    reasons = applied_reasons(client, monkeypatch)
    healthy = link.health
    link.set_health(LinkHealth(False, CONNECTING, "connecting to the target", healthy.since))
    async with running(client, links, FixedTargets(target)) as controller:
        controller.refresh(target.node_name)
        await asyncio.sleep(0.5)
        link.set_health(healthy)
        await asyncio.sleep(0.2)
        link.set_health(LinkHealth(False, "Unreachable", "no answer", healthy.since))
        await until(client, target, lambda node: ready(node) == "False")

    assert reasons == ["Unreachable"]


def applied_reasons(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the reasons of the Ready conditions that are written from now on."""
    reasons: list[str] = []
    apply = client.apply

    async def spy(kind: Kind, obj: Object, **options: Any) -> Object:
        if ready_condition := objects.condition(obj, "Ready"):
            reasons.append(ready_condition["reason"])

        return await apply(kind, obj, **options)

    monkeypatch.setattr(client, "apply", spy)
    return reasons


async def test_a_restart_writes_only_what_has_changed(
    client: Client, target: TargetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen with fifty Targets: each start of the agent wrote all Nodes twice."""
    links, _link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")

    applied: list[Object] = []
    apply = client.apply

    async def spy(kind: Kind, obj: Object, **options: Any) -> Object:
        applied.append(obj)
        return await apply(kind, obj, **options)

    monkeypatch.setattr(client, "apply", spy)
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        labels = {"metadata": {"name": keys.SUMMARY_NAME, "labels": {"new": "1"}}}
        show(link, {**SUMMARY, **labels})
        node = await until(client, target, lambda node: "new" in objects.labels(node))
        assert "example.com/disk" not in objects.labels(node)
        assert ["status" in obj for obj in applied] == [False]
        show(link, {**SUMMARY, **labels, "capacity": {"cpu": "77"}})
        node = await until(client, target, lambda node: capacity(node)["cpu"] == "77")

    assert "memory" not in capacity(node)
    assert ["status" in obj for obj in applied] == [False, True]
