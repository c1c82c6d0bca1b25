"""Attacks that do one harmless thing in great numbers, each within the rights of a tenant."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from asyncio.subprocess import DEVNULL
from contextlib import suppress
from typing import Final

import aiohttp

from tests import kit
from tests.isolation.acts import (
    Attack,
    Begin,
    at_once,
    create_all,
    is_running,
    run_all,
    run_labelled,
    until_running,
)
from tests.isolation.costly import selecting_pod
from tests.isolation.scene import ATTACKER, SOURCE, TARGETS, Scene
from vnode.api import kinds
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.cli import kubeconfigs

_KUBELET_PORT: Final = 10250
HELD: Final = "example.com/held"


async def costly_terms(scene: Scene, begin: Begin) -> None:
    """Create five pods a second whose terms are about all pods of all namespaces, each another."""
    begin()
    for number in itertools.count():
        with suppress(VnodeError):
            await scene.tenant.create(kinds.PODS, selecting_pod(f"terms-{number}"), ATTACKER)
            await scene.tenant.delete(kinds.PODS, f"terms-{number - 50}", ATTACKER)

        await asyncio.sleep(0.2)


async def exec_streams(scene: Scene, begin: Begin) -> None:
    """Have ten commands write 50 MB each as fast as they are read, again and again."""
    await scene.tenant.create(kinds.PODS, kit.pod("writes"), ATTACKER)
    await kit.until_one(scene.tenant, kinds.PODS, "writes", ATTACKER, is_running, 60)
    user = f"system:serviceaccount:{ATTACKER}:default"
    words = ("exec", "--as", user, "--namespace", ATTACKER, "writes", "--")
    write = ("sh", "-c", "yes | head -c 50000000")
    begin()

    async def run(_number: int) -> None:
        command = [*scene.fleet.kubectl_command(SOURCE), *words, *write]
        process = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()

    await at_once(10, run)


async def small_objects(scene: Scene, begin: Begin) -> None:
    """Change 300 ConfigMaps that running pods use, a hundred a second."""
    maps: list[Object] = [
        {"metadata": {"name": f"small-{n}"}, "data": {"a": "b"}} for n in range(300)
    ]
    await create_all(scene, kinds.CONFIG_MAPS, maps)
    volumes = [{"name": f"v{n}", "configMap": {"name": f"small-{n}"}} for n in range(300)]
    pods = [kit.pod(f"user-{n}", volumes=volumes[60 * n : 60 * n + 60]) for n in range(5)]
    await run_all(scene, pods)
    begin()
    for number in itertools.count():
        body = {"data": {"n": str(number)}}
        await scene.tenant.patch(kinds.CONFIG_MAPS, f"small-{number % 300}", body, ATTACKER)
        await asyncio.sleep(0.01)


async def services(scene: Scene, begin: Begin) -> None:
    """Make and delete Services beside running pods of theirs, eight at once."""
    await run_labelled(scene, "serves", 10)
    begin()

    async def make(worker: int) -> None:
        spec = {"selector": {"serves": "yes"}, "ports": [{"port": 80}]}
        body = {"metadata": {"name": f"flood-{worker}"}, "spec": spec}
        await scene.tenant.create(kinds.SERVICES, body, ATTACKER)
        await asyncio.sleep(0.1)
        await scene.tenant.delete(kinds.SERVICES, f"flood-{worker}", ATTACKER)

    await at_once(8, make)


async def rebalances(scene: Scene, begin: Begin) -> None:
    """Ask for Rebalances of thirty planned pods, ten a second, and delete earlier ones."""
    policy: Object = {
        "metadata": {"name": "balanced"},
        "spec": {"selector": {"matchLabels": {"balanced": "yes"}}, "mode": "Spread"},
    }
    await scene.tenant.create(kinds.PLACEMENT_POLICIES, policy, ATTACKER)
    deployment = kit.deployment("balanced", 30, kit.pod("balanced"))
    deployment["spec"]["template"]["metadata"]["labels"]["balanced"] = "yes"
    await scene.tenant.create(kinds.DEPLOYMENTS, deployment, ATTACKER)
    await until_running(scene, 30)
    begin()
    for number in itertools.count():
        body: Object = {"metadata": {"name": f"again-{number}"}, "spec": {}}
        with suppress(VnodeError):
            await scene.tenant.create(kinds.REBALANCES, body, ATTACKER)
            await scene.tenant.delete(kinds.REBALANCES, f"again-{number - 20}", ATTACKER)

        await asyncio.sleep(0.1)


async def finalizers(scene: Scene, begin: Begin) -> None:
    """Delete a hundred pods at once that finalizers hold, take these off, and begin again."""
    begin()
    for number in itertools.count():
        pods = [kit.pod(f"held-{number}-{n}") for n in range(100)]
        for pod in pods:
            pod["metadata"]["finalizers"] = [HELD]
            pod["metadata"].setdefault("labels", {})["held"] = "yes"

        await create_all(scene, kinds.PODS, pods)
        query = {"labelSelector": "held=yes", "gracePeriodSeconds": "0"}
        await scene.tenant.request("DELETE", kinds.PODS.path(ATTACKER), query=query)
        for pod in pods:
            with suppress(VnodeError):
                name, body = pod["metadata"]["name"], {"metadata": {"finalizers": None}}
                await scene.tenant.patch(kinds.PODS, name, body, ATTACKER)


async def event_floods(scene: Scene, begin: Begin) -> None:
    """Record Events about a running pod on eight connections, as fast as it goes."""
    await scene.tenant.create(kinds.PODS, kit.pod("told"), ATTACKER)
    begin()
    numbers = itertools.count()

    async def tell(_worker: int) -> None:
        event: Object = {
            "metadata": {"name": f"told.{next(numbers)}"},
            "involvedObject": {"kind": "Pod", "namespace": ATTACKER, "name": "told"},
            "reason": "Flood",
            "message": "x" * 500,
            "type": "Normal",
        }
        await scene.tenant.create(kinds.EVENTS, event, ATTACKER)

    await at_once(8, tell)


async def budgets(scene: Scene, begin: Begin) -> None:
    """Have 1,000 PodDisruptionBudgets for twenty running pods, and change ten a second."""
    selector = {"matchLabels": {"budgeted": "yes"}}
    made: list[Object] = [
        {"metadata": {"name": f"b-{n}"}, "spec": {"minAvailable": 1, "selector": selector}}
        for n in range(1000)
    ]
    await create_all(scene, kinds.POD_DISRUPTION_BUDGETS, made)
    await run_labelled(scene, "budgeted", 20)
    begin()
    for number in itertools.count():
        body = {"spec": {"minAvailable": number % 20}}
        name = f"b-{number % 1000}"
        await scene.tenant.patch(kinds.POD_DISRUPTION_BUDGETS, name, body, ATTACKER)
        await asyncio.sleep(0.1)


async def unplaceable(scene: Scene, begin: Begin) -> None:
    """Have 200 pods wait that ask for more than any cluster has, and change one all the time."""
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "9000"}}}]
    await create_all(
        scene, kinds.PODS, [kit.pod(f"huge-{n}", containers=containers) for n in range(200)]
    )
    begin()
    for number in itertools.count():
        body = {"metadata": {"labels": {"n": str(number)}}}
        with suppress(VnodeError):
            await scene.tenant.patch(kinds.PODS, f"huge-{number % 200}", body, ATTACKER)

        await asyncio.sleep(0.02)


async def tokens_by_strangers(scene: Scene, begin: Begin) -> None:
    """Ask a virtual node's kubelet API for logs with tokens that nobody has issued, twenty at once.

    Each token is another one, so that each has to be reviewed.
    """
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    url = f"https://{scene.agent}:{_KUBELET_PORT}/containerLogs/{ATTACKER}/a/b"
    numbers = itertools.count()
    begin()

    async def ask(session: aiohttp.ClientSession) -> None:
        headers = {"Authorization": f"Bearer nobody-{next(numbers)}"}
        async with session.get(url, headers=headers, ssl=trusting) as answer:
            await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await at_once(20, lambda _number: ask(session))


async def changing_kubeconfigs(scene: Scene, begin: Begin) -> None:
    """Write other credentials into the Secret of ten Targets, twenty times a second."""
    reach, _user = kubeconfigs.read(scene.fleet.kubeconfig(TARGETS[0]))
    spec = {"kubeconfigSecret": {"name": "changes"}}
    secret = {"metadata": {"name": "changes"}, "stringData": {}}
    await scene.tenant.create(kinds.SECRETS, secret, ATTACKER)
    for number in range(10):
        body = {"metadata": {"name": f"changes-{number}"}, "spec": spec}
        await scene.tenant.create(kinds.TARGETS, body, ATTACKER)

    begin()
    for number in itertools.count():
        body = {"stringData": {"config": kubeconfigs.build(reach, f"nobody-{number}", ATTACKER)}}
        await scene.tenant.patch(kinds.SECRETS, "changes", body, ATTACKER)
        await asyncio.sleep(0.05)


async def changing_sources(scene: Scene, begin: Begin) -> None:
    """Change to whom ten Sources give rights, twenty times a second."""
    for number in range(10):
        body = {"metadata": {"name": f"changes-{number}"}, "spec": {"userName": "nobody"}}
        await scene.tenant.create(kinds.SOURCES, body, ATTACKER)

    begin()
    for number in itertools.count():
        body = {"spec": {"userName": f"nobody-{number}"}}
        await scene.tenant.patch(kinds.SOURCES, f"changes-{number % 10}", body, ATTACKER)
        await asyncio.sleep(0.05)


ALL: Final[tuple[Attack, ...]] = (
    costly_terms,
    exec_streams,
    small_objects,
    services,
    rebalances,
    finalizers,
    event_floods,
    budgets,
    unplaceable,
    tokens_by_strangers,
    changing_kubeconfigs,
    changing_sources,
)
