"""Attacks by work that tenants have every day, one kind each, and as much of it as they can have.

CI farms run Jobs, platforms roll out, operators change what they own: none of it is hostile by
itself, and none may slow others.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import Final

from tests import kit
from tests.isolation.acts import (
    Attack,
    Begin,
    at_once,
    create_all,
    run_all,
    run_labelled,
    until_running,
)
from tests.isolation.scene import ATTACKER, Scene
from vnode.api import kinds
from vnode.api.errors import VnodeError
from vnode.api.objects import Object

_PORTS: Final = (9443, 9444, 10250)  # of the source's agent: webhook, extender, kubelet API


async def jobs(scene: Scene, begin: Begin) -> None:
    """Run Jobs of ten pods at once that end after a moment, one Job after the other."""
    begin()
    for number in itertools.count():
        template = kit.pod("job")
        template["spec"]["restartPolicy"] = "Never"
        spec: Object = {
            "completions": 30,
            "parallelism": 10,
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        }
        body = {"metadata": {"name": f"job-{number}"}, "spec": spec}
        await scene.tenant.create(kinds.JOBS, body, ATTACKER)
        await asyncio.sleep(5)
        if number >= 2:
            name, query = f"job-{number - 2}", {"propagationPolicy": "Background"}
            await scene.tenant.request("DELETE", kinds.JOBS.path(ATTACKER, name), query=query)


async def rollouts(scene: Scene, begin: Begin) -> None:
    """Change the template of a Deployment of twenty pods every three seconds."""
    template = kit.pod("rolls")
    await scene.tenant.create(kinds.DEPLOYMENTS, kit.deployment("rolls", 20, template), ATTACKER)
    await until_running(scene, 20)
    begin()
    for number in itertools.count():
        changed = {"metadata": {"annotations": {"example.com/n": str(number)}}}
        body = {"spec": {"template": changed}}
        await scene.tenant.patch(kinds.DEPLOYMENTS, "rolls", body, ATTACKER)
        await asyncio.sleep(3)


async def brief_pods(scene: Scene, begin: Begin) -> None:
    """Create pods on four connections, and delete each before it can have a place."""
    begin()
    numbers = itertools.count()

    async def make(_worker: int) -> None:
        name = f"brief-{next(numbers)}"
        await scene.tenant.create(kinds.PODS, kit.pod(name), ATTACKER)
        query = {"gracePeriodSeconds": "0"}
        await scene.tenant.request("DELETE", kinds.PODS.path(ATTACKER, name), query=query)

    await at_once(4, make)


async def network_policies(scene: Scene, begin: Begin) -> None:
    """Change a hundred NetworkPolicies that select thirty running pods, ten a second."""
    await run_labelled(scene, "selected", 30)
    spec = {"podSelector": {"matchLabels": {"selected": "yes"}}, "policyTypes": ["Ingress"]}
    made: list[Object] = [{"metadata": {"name": f"np-{n}"}, "spec": spec} for n in range(100)]
    await create_all(scene, kinds.NETWORK_POLICIES, made)
    begin()
    for number in itertools.count():
        body = {"spec": {"ingress": [{"ports": [{"port": 1 + number % 60_000}]}]}}
        await scene.tenant.patch(kinds.NETWORK_POLICIES, f"np-{number % 100}", body, ATTACKER)
        await asyncio.sleep(0.1)


async def changing_policies(scene: Scene, begin: Begin) -> None:
    """Make and delete PlacementPolicies for fifty running pods, five a second."""
    await run_labelled(scene, "judged", 50)
    begin()
    spec = {"selector": {"matchLabels": {"judged": "yes"}}, "mode": "Spread"}
    for number in itertools.count():
        with suppress(VnodeError):
            body: Object = {"metadata": {"name": f"judges-{number}"}, "spec": spec}
            await scene.tenant.create(kinds.PLACEMENT_POLICIES, body, ATTACKER)
            await scene.tenant.delete(kinds.PLACEMENT_POLICIES, f"judges-{number - 3}", ATTACKER)

        await asyncio.sleep(0.2)


async def resizes(scene: Scene, begin: Begin) -> None:
    """Change what twenty running pods request, twenty times a second in all."""
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}]
    await run_all(scene, [kit.pod(f"resized-{n}", containers=containers) for n in range(20)])
    begin()
    for number in itertools.count():
        name, requests = f"resized-{number % 20}", {"cpu": f"{1 + number // 20 % 50}m"}
        body: Object = {
            "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}
        }
        with suppress(VnodeError):
            await scene.tenant.patch(
                kinds.PODS, name, body, ATTACKER, subresource="resize", strategic=True
            )

        await asyncio.sleep(0.05)


async def connections(scene: Scene, begin: Begin) -> None:
    """Open a thousand connections to the agent's ports, without a word, and again once closed."""
    begin()

    async def hold(number: int) -> None:
        reader, writer = await asyncio.open_connection(scene.agent, _PORTS[number % len(_PORTS)])
        try:
            await reader.read()
        finally:
            writer.close()

    await at_once(1000, hold)


ALL: Final[tuple[Attack, ...]] = (
    jobs,
    rollouts,
    brief_pods,
    network_policies,
    changing_policies,
    resizes,
    connections,
)
