"""`vnode disconnect`: both sides are clean, or what is left on one is said."""

from __future__ import annotations

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.outages import without_api_server
from tests.e2e.own_targets import home, shared  # noqa: F401 - fixtures
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.kube.client import Client


async def test_disconnect_removes_both_sides_and_ends_what_ran(
    fleet: Fleet,
    source: Client,
    c2: Client,
    shared: str,  # noqa: F811
) -> None:
    assert own.connect(fleet, shared, "c2").code == 0
    await own.assert_connects(source, shared)
    await source.create(kinds.CONFIG_MAPS, {"metadata": {"name": "settings"}}, shared)
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    await source.create(kinds.PODS, kit.pod("here", volumes=volumes), shared)
    await kit.until_one(source, kinds.PODS, "here", shared, lambda p: kit.phase(p) == "Running")
    await c2.get(kinds.CONFIG_MAPS, "settings", shared)
    words = ("--source", fleet.kubeconfig("c1"), "--target", fleet.kubeconfig("c2"), "-n", shared)
    done = vnode("disconnect", "bad", *words)
    assert done.code == 0, done.err
    assert f"target/{shared}/bad deleted" in done.out
    assert f"target: source/{shared}/" in done.out
    assert "Left" not in done.out
    for client, kind in (
        (source, kinds.TARGETS),
        (source, kinds.PODS),
        (c2, kinds.SOURCES),
        (c2, kinds.POD_CHAPERONS),
        (c2, kinds.PODS),
    ):
        assert await client.list(kind, shared) == []

    selector = keys.PARENT_CLUSTER_NAME
    assert await c2.list(kinds.CONFIG_MAPS, shared, label_selector=selector) == []
    secrets = [objects.name(secret) for secret in await source.list(kinds.SECRETS, shared)]
    assert "vnode-target-bad" not in secrets
    again = vnode("disconnect", "bad", *words)
    assert (again.code, "there is no Target" in again.err) == (1, True)


async def test_disconnect_without_the_other_side_says_what_is_left_there(
    fleet: Fleet,
    source: Client,
    c3: Client,
    shared: str,  # noqa: F811
) -> None:
    assert own.connect(fleet, shared, "c3").code == 0
    await own.assert_connects(source, shared)
    await own.run_pod(source, shared, "there")
    async with without_api_server(fleet, source, "c3"):
        words = ("--source", fleet.kubeconfig("c1"), "-n", shared, "--timeout", "30")
        done = vnode("disconnect", "bad", *words)
        assert done.code == 0, done.err
        assert "is unreachable" in done.out
        chaperons = f"podchaperons -n {shared} -l {keys.PARENT_CLUSTER_NAME}=c1"
        assert f"kubectl delete {chaperons}" in done.out
        assert "the Source of system:serviceaccount:" in done.out
        assert await source.list(kinds.PODS, shared) == []
        assert await source.list(kinds.TARGETS, shared) == []

    assert own.connect(fleet, shared, "c3").code == 0
    await kit.until_gone(c3, kinds.POD_CHAPERONS, shared)
