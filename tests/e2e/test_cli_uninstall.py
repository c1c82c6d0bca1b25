"""`vnode uninstall`: no finalizer stays, and delegates end or run on as was asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import kit
from tests.fleets import Result, started, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.kube.client import Client


@pytest.fixture(autouse=True)
def _clean() -> None:
    """Replace the fixture that cleans the shared fleet, which these tests do not use."""


@pytest.fixture
def own_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield two clusters for one test, which takes vnode out of them."""
    words = ("c1", "c2", "--nodes", "1", "--agents", "--connect", "c1:c2")
    with started(tmp_path_factory, *words) as fleet:
        yield fleet


def uninstall(fleet: Fleet, name: str, *words: str) -> Result:
    done = vnode("uninstall", "--kubeconfig", fleet.kubeconfig(name), "--timeout", "20", *words)
    assert done.code == 0, done.err
    return done


async def ours_in(client: Client, kind: kinds.Kind) -> list[str]:
    selector = "app.kubernetes.io/part-of=vnode"
    return [objects.name(obj) for obj in await client.list(kind, label_selector=selector)]


async def assert_no_installation(client: Client) -> None:
    for kind in (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.MUTATING_WEBHOOKS):
        assert await ours_in(client, kind) == []

    with pytest.raises(NotFound):
        await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)

    for pod in await client.list(kinds.PODS):
        assert all(map(keys.is_foreign, objects.finalizers(pod)))


async def delegates(client: Client, proxy: Object) -> list[Object]:
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    return await client.list(kinds.PODS, "default", label_selector=selector)


async def test_a_source_is_uninstalled_with_its_agent_and_its_pods_run_at_home_again(
    own_fleet: Fleet,
) -> None:
    async with own_fleet.client("c1") as c1, own_fleet.client("c2") as c2:
        template = kit.deployment("app", 2, kit.pod("app"))
        template["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
        await c1.create(kinds.DEPLOYMENTS, template, "default")
        await kit.until(c1, kinds.PODS, lambda pods: kit.running(pods, 2), namespace="default")
        done = uninstall(own_fleet, "c1", "--delegates", "delete", "--crds")
        assert "is still running, without permissions" in done.out
        own_fleet.run("stop", "c1", "agent")
        found = await kit.until(
            c1, kinds.PODS, lambda pods: kit.running(pods, 2), namespace="default"
        )
        assert all(not objects.spec(pod)["nodeName"].startswith("adm") for pod in found.values())
        assert await c2.list(kinds.POD_CHAPERONS, "default") == []
        assert await ours_in(c1, kinds.CRDS) == []
        assert await ours_in(c1, kinds.CLUSTER_ROLES) == []


async def test_a_source_without_agent_and_target_leaves_no_finalizer_and_says_what_runs_on(
    own_fleet: Fleet,
) -> None:
    async with own_fleet.client("c1") as c1:
        await c1.create(kinds.PODS, kit.pod("alone"), "default")
        await kit.until_running(c1, "alone")
        own_fleet.run("stop", "c1", "agent")
        await kit.until_one(
            c1,
            kinds.LEASES,
            "vnode-agent",
            "vnode",
            lambda lease: not lease["spec"].get("holderIdentity"),
        )
        own_fleet.run("stop", "c2", "kube-apiserver", "--kill")
        done = uninstall(own_fleet, "c1", "--delegates", "delete")
        assert "target default/c2 is unreachable" in done.out
        assert "CRDs kept: --crds deletes them, too" in done.out
        await assert_no_installation(c1)
        assert await c1.list(kinds.NODES, label_selector=keys.PROVIDER_LABEL) == []
        assert len(await ours_in(c1, kinds.CRDS)) == len(manifests.crds())


async def test_a_target_is_uninstalled_and_its_delegates_run_on_without_their_kinds(
    own_fleet: Fleet,
) -> None:
    async with own_fleet.client("c1") as c1, own_fleet.client("c2") as c2:
        await c1.create(kinds.PODS, kit.pod("kept"), "default")
        proxy = await kit.until_running(c1, "kept")
        [before] = await delegates(c2, proxy)
        done = uninstall(own_fleet, "c2", "--delegates", "keep", "--crds")
        assert "1 delegate pod kept as ordinary pods, as requested" in done.out
        assert await ours_in(c2, kinds.CRDS) == []
        [after] = await delegates(c2, proxy)
        assert objects.uid(after) == objects.uid(before)
        assert not objects.is_terminating(after)
        assert not objects.metadata(after).get("ownerReferences")


async def test_a_target_without_agent_ends_its_delegates_and_its_source_is_told(
    own_fleet: Fleet,
) -> None:
    async with own_fleet.client("c1") as c1, own_fleet.client("c2") as c2:
        await c1.create(kinds.CONFIG_MAPS, {"metadata": {"name": "settings"}}, "default")
        volumes = [{"name": "v", "configMap": {"name": "settings"}}]
        await c1.create(kinds.PODS, kit.pod("ended", volumes=volumes), "default")
        proxy = await kit.until_running(c1, "ended")
        await c2.get(kinds.CONFIG_MAPS, "settings", "default")
        own_fleet.run("stop", "c2", "agent")
        uninstall(own_fleet, "c2", "--delegates", "delete", "--crds")
        assert await delegates(c2, proxy) == []
        selector = keys.PARENT_CLUSTER_NAME
        assert await c2.list(kinds.CONFIG_MAPS, "default", label_selector=selector) == []
        assert await ours_in(c2, kinds.CRDS) == []
        assert await ours_in(c2, kinds.CLUSTER_ROLES) == []
        # The source sees the delegate go, or loses the target; its own removal frees the rest.
        done = vnode("disconnect", "c2", "--source", own_fleet.kubeconfig("c1"), "--timeout", "30")
        assert done.code == 0, done.err
        await kit.until_gone(c1, kinds.PODS, "default")
