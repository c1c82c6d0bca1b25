"""Pods of many namespaces run in a target whose ClusterSource selects namespaces."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.test_following import secret
from tests.e2e.test_target_options import scheduled
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.kube.client import Client

NAME = "selecting"
LABEL = {"vnode.dev/cluster-sources": "enabled"}


@pytest.fixture
async def selecting(fleet: Fleet, source: Client, c3: Client) -> AsyncIterator[None]:
    """Connect c3 by a ClusterTarget, as `vnode connect` does by default, and disconnect it."""
    ends = ("--source", fleet.kubeconfig("c1"), "--target", fleet.kubeconfig("c3"))
    done = vnode("connect", *ends, "--cluster-wide", "--name", NAME)
    assert not done.code, done.err
    connected = own.is_because("Connected")
    await kit.until_one(source, kinds.CLUSTER_TARGETS, NAME, "", connected)
    yield
    done = vnode("disconnect", NAME, *ends)
    assert done.code == 0, done.out + done.err
    assert "Left" not in done.out
    assert not await c3.list(kinds.CLUSTER_SOURCES)
    for kind in (kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLE_BINDINGS):
        found = map(objects.name, await c3.list(kind))
        assert not [name for name in found if name.startswith("admiralty-cluster-source")]


@pytest.fixture
async def both(source: Client, c3: Client) -> AsyncIterator[str]:
    """Yield a namespace of c1 and c3 that takes part in c1."""
    async with kit.namespace_in_all(f"both-{uuid.uuid4().hex[:6]}", source, c3) as name:
        yield name


async def test_a_pod_runs_with_its_secret_in_a_namespace_that_is_labelled_and_is_refused_before(
    fleet: Fleet, source: Client, c3: Client, both: str, selecting: None
) -> None:
    await source.create(kinds.SECRETS, secret("key", word="x"), both)
    volumes = [{"name": "key", "secret": {"secretName": "key"}}]
    await source.create(kinds.PODS, kit.pod("bare"), both)
    await source.create(kinds.PODS, kit.pod("with-secret", volumes=volumes), both)
    for name, words in (("bare", "podchaperons"), ("with-secret", "secrets")):
        waiting = await kit.until_one(
            source, kinds.PODS, name, both, lambda p: "is forbidden" in scheduled(p)
        )
        text = scheduled(waiting)
        assert words in text
        assert f"kubectl label namespace {both} vnode.dev/cluster-sources=enabled" in text
        await source.delete(kinds.PODS, name, both)

    await kit.until_gone(source, kinds.PODS, both)
    judged = vnode("doctor", "--kubeconfig", fleet.kubeconfig("c1"))
    assert f"kubectl label namespace {both}" in judged.out
    await c3.patch(kinds.NAMESPACES, both, {"metadata": {"labels": LABEL}})
    (grant,) = await c3.list(kinds.CLUSTER_SOURCES)
    await kit.until_one(
        c3, kinds.CLUSTER_SOURCES, objects.name(grant), "", lambda s: both in str(own.ready(s))
    )
    await source.create(kinds.PODS, kit.pod("runs", volumes=volumes), both)
    running = await kit.until_one(
        source, kinds.PODS, "runs", both, lambda p: kit.phase(p) == "Running"
    )
    assert objects.node_name(running) == f"admiralty-{NAME}"
    copied = await c3.get(kinds.SECRETS, "key", both)
    shown = fleet.kubectl("c1", "-n", both, "exec", "runs", "--", "sh", "-c", "echo $CLUSTER")
    assert shown.strip() == "c3"
    await source.patch(kinds.SECRETS, "key", {"stringData": {"word": "y"}}, both)
    changed = await source.get(kinds.SECRETS, "key", both)
    await kit.until_one(
        c3, kinds.SECRETS, "key", both, lambda s: s["data"] == changed["data"] != copied["data"]
    )
    await source.delete(kinds.PODS, "runs", both)
    await kit.until_gone(c3, kinds.SECRETS, both, field_selector="metadata.name=key")
    await kit.until_gone(source, kinds.PODS, both)
