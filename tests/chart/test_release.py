"""A release through its life: install, connect, upgrade, roll back, uninstall, install again."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from tests import kit
from tests.chart import releases
from tests.chart.helm import CHART
from tests.chart.kubelet import Kubelet, kubelet
from tests.chart.releases import AGENT, NAMESPACE, SCHEDULER
from tests.fleets import SOURCE, TARGET
from tests.kit import Fleet
from vnode.api import documents, kinds, objects
from vnode.api.objects import Object

OLD_TEXT = "As it was in an older release."


def older_chart(folder: Path) -> Path:
    """Return the chart, with another description of one kind."""
    chart = folder / "vnode"
    shutil.copytree(CHART, chart)
    file = chart / "files" / "crds" / "targets.yaml"
    crd = yaml.safe_load(file.read_text())
    schema(crd)["description"] = OLD_TEXT
    file.write_text(yaml.safe_dump(crd))
    return chart


def schema(crd: Object) -> Object:
    found: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


async def description(machine: Kubelet) -> str:
    crd = await machine.client.get(kinds.CRDS, kinds.TARGETS.resource)
    return str(schema(crd)["description"])


def log_level(deployment: Object) -> str:
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return next(str(e["value"]) for e in container["env"] if e["name"] == "VNODE_LOG_LEVEL")


async def test_a_release_delegates_pods_through_upgrade_rollback_and_uninstall(
    fleet: Fleet, tmp_path: Path
) -> None:
    async with (
        kubelet(fleet, SOURCE, tmp_path / "pods") as c1,
        kubelet(fleet, TARGET, tmp_path / "pods") as c2,
    ):
        await install(c1, c2, tmp_path)
        first = await releases.delegate(c1.client, c2.client, "first")
        await helm_test(c1)
        await upgrade(c1, c2)
        await releases.delegate(c1.client, c2.client, "second")
        await roll_back(c1, c2)
        third = await releases.delegate(c1.client, c2.client, "third")
        await uninstall(c1, c2)
        await still_there(c2, first, third)
        await install_again(c1, c2)
        await still_there(c2, first, third)
        await ends(c1, c2)


async def install(c1: Kubelet, c2: Kubelet, folder: Path) -> None:
    """Install the older chart in the source and today's in the target, then connect the two.

    The scheduler is started after the agent, because it waits for the agent's Secret.
    """
    chart = older_chart(folder)
    words = ("install", "vnode", chart, "--create-namespace")
    annotations = releases.run(c1, *words, values=releases.values(c1))
    assert "vnode connect --source" in annotations
    assert await description(c1) == OLD_TEXT
    releases.install(c2)
    await releases.play(c1, AGENT)
    await releases.play(c2, AGENT, SCHEDULER)
    releases.connect(c1.fleet, SOURCE, TARGET)


async def helm_test(c1: Kubelet) -> None:
    """Run the pod of `helm test` as a process, because no node here can run it."""
    printed = releases.run(c1, "get", "hooks", "vnode")
    [pod] = documents.load_all(printed)
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert await c1.run_once("test", pod["spec"]) == f"{c1.address} 200\n"


async def upgrade(c1: Kubelet, c2: Kubelet) -> None:
    """Upgrade both releases to today's chart, another configuration and another log level."""
    for machine in (c1, c2):
        wanted = releases.values(machine, candidates={"parallel": 2})
        wanted["controllerManager"]["logLevel"] = "debug"
        before = await machine.client.get(kinds.DEPLOYMENTS, AGENT, NAMESPACE)
        releases.run(machine, "upgrade", "vnode", CHART, values=wanted)
        after = await machine.client.get(kinds.DEPLOYMENTS, AGENT, NAMESPACE)
        assert after["spec"]["template"] != before["spec"]["template"]
        assert log_level(after) == "debug"
        await machine.roll_out()

    assert await description(c1) != OLD_TEXT


async def roll_back(c1: Kubelet, c2: Kubelet) -> None:
    for machine in (c1, c2):
        releases.run(machine, "rollback", "vnode", "1")
        deployment = await machine.client.get(kinds.DEPLOYMENTS, AGENT, NAMESPACE)
        assert log_level(deployment) == "info"
        await machine.roll_out()

    assert await description(c1) == OLD_TEXT


async def uninstall(c1: Kubelet, c2: Kubelet) -> None:
    """Uninstall both releases; only the CRDs stay, and with them all objects of their kinds."""
    for machine in (c2, c1):
        for name in list(machine.pods):
            await machine.stop(name)

        output = releases.run(machine, "uninstall", "vnode")
        assert "kept due to the resource policy" in output
        left = await machine.client.list(kinds.DEPLOYMENTS, NAMESPACE)
        assert left == []
        hooks = await machine.client.list(kinds.MUTATING_WEBHOOKS)
        assert hooks == []

    assert len(await c1.client.list(kinds.TARGETS, "default")) == 1
    assert len(await c2.client.list(kinds.POD_CHAPERONS, "default")) == 3


async def still_there(c2: Kubelet, *delegates: Object) -> None:
    for delegate in delegates:
        pod = await c2.client.get(kinds.PODS, objects.name(delegate), "default")
        assert objects.uid(pod) == objects.uid(delegate)
        assert kit.phase(pod) == "Running"


async def install_again(c1: Kubelet, c2: Kubelet) -> None:
    """Install both releases again.

    The CRDs that are left belong to a release of this name, so helm takes them.
    """
    for machine in (c1, c2):
        releases.install(machine)

    await releases.play(c1, AGENT)
    await releases.play(c2, AGENT, SCHEDULER)
    await releases.delegate(c1.client, c2.client, "fourth")


async def ends(c1: Kubelet, c2: Kubelet) -> None:
    """Delete the Target, then the release, as docs/install.md says: no finalizer is left behind."""
    await c1.client.delete(kinds.TARGETS, TARGET, "default")
    await kit.until_gone(c1.client, kinds.PODS, "default")
    await kit.until_gone(c2.client, kinds.POD_CHAPERONS, "default")
    releases.run(c1, "uninstall", "vnode")
