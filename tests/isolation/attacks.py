"""What a tenant, a target or a stranger does to slow everybody else, one function for each.

Those that do one thing in great numbers are in `floods`, those by everyday work in `churn`.

`python -m tests.isolation.attacks FOLDER NAME` goes on with one until it is ended, in a process of
its own, as attackers have machines of their own. It prints BEGUN once what it needs is there.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp

from hack.fleetlib import kwok
from tests import kit, placement_policies
from tests.isolation import churn, floods
from tests.isolation import scene as scenes
from tests.isolation.acts import (
    Attack,
    Begin,
    at_once,
    come_and_go,
    create_all,
    dry_run,
    is_running,
    run_all,
    until_running,
)
from tests.isolation.costly import labelled_pod, locking_pod, many_labels_pod, stuck_pod, yaml_pod
from tests.isolation.hostile_server import informational
from tests.isolation.scene import ATTACKER, Scene
from tests.kit import Fleet
from vnode.api import keys, kinds, webhook_paths
from vnode.api.errors import AlreadyExists, NotFound, VnodeError
from vnode.api.objects import Object

BEGUN: Final = "begun"
_WEBHOOK_PORT: Final = 9443


async def yaml_by_dry_runs(scene: Scene, begin: Begin) -> None:
    """Create pods by dry runs, thirty at once, whose constraints are costly to read."""
    begin()
    await at_once(30, lambda number: dry_run(scene, yaml_pod(f"yaml-{number}")))


async def reviews_by_strangers(scene: Scene, begin: Begin) -> None:
    """Send such pods to the webhook's port on forty connections, without any credentials."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    url = f"https://{scene.agent}:{_WEBHOOK_PORT}{webhook_paths.PODS}"
    body = {"request": {"uid": "u", "namespace": ATTACKER, "object": yaml_pod("stranger")}}
    begin()

    async def send(session: aiohttp.ClientSession) -> None:
        async with session.post(url, json=body, ssl=trusting) as answer:
            await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await at_once(40, lambda _number: send(session))


async def large_reviews(scene: Scene, begin: Begin) -> None:
    """Create pods of 200 kB of annotations by dry runs, thirty at once."""
    annotations = {keys.ELECT: "", **{f"example.com/a{n}": "x" * 2000 for n in range(100)}}
    begin()
    await at_once(
        30, lambda number: dry_run(scene, kit.pod(f"large-{number}", annotations=annotations))
    )


async def costly_policies(scene: Scene, begin: Begin) -> None:
    """Patch one of 150 policies that are costly to match, five times a second, beside 100 pods."""
    await create_all(
        scene, kinds.PLACEMENT_POLICIES, [placement_policies.costly(n) for n in range(150)]
    )
    await run_all(scene, [labelled_pod(n) for n in range(100)])
    begin()
    for priority in itertools.count():
        body = {"spec": {"priority": priority % 1000}}
        await scene.tenant.patch(kinds.PLACEMENT_POLICIES, "costly-0", body, ATTACKER)
        await asyncio.sleep(0.2)


async def unschedulable_pods(scene: Scene, begin: Begin) -> None:
    """Have 600 pods wait whose terms are costly, and wake them by a pod that comes and goes."""
    await create_all(scene, kinds.PODS, [stuck_pod(f"stuck-{n}") for n in range(600)])
    begin()
    await come_and_go(scene, pause=2.0)


async def locked_targets(scene: Scene, begin: Begin) -> None:
    """Have one pod in each target that wants no other pod of any namespace beside it."""
    for name in scenes.TARGETS:
        pod = await scene.tenant.create(kinds.PODS, locking_pod(f"lock-{name}", name), ATTACKER)
        await kit.until_one(
            scene.tenant, kinds.PODS, str(pod["metadata"]["name"]), ATTACKER, is_running, 60
        )

    begin()
    await asyncio.Event().wait()


async def expressions(scene: Scene, begin: Begin) -> None:
    """Create pods with many labels and an expression that takes long for each, and delete them."""
    begin()
    for number in itertools.count():
        name = f"expression-{number}"
        with suppress(VnodeError):  # refused, which is an answer
            await scene.tenant.create(kinds.PODS, many_labels_pod(name), ATTACKER)
            await scene.tenant.delete(kinds.PODS, f"expression-{number - 60}", ATTACKER)


async def statuses(scene: Scene, begin: Begin) -> None:
    """Change an annotation of each of twenty running pods, fifty times a second in all."""
    await run_all(scene, [kit.pod(f"changed-{n}") for n in range(20)])
    begin()
    for number in itertools.count():
        body = {"metadata": {"annotations": {"example.com/n": str(number)}}}
        with suppress(VnodeError):
            await scene.tenant.patch(kinds.PODS, f"changed-{number % 20}", body, ATTACKER)

        await asyncio.sleep(0.02)


async def followed_objects(scene: Scene, begin: Begin) -> None:
    """Change ConfigMaps of 100 kB that running pods use, ten times a second."""
    text = "x" * 100_000
    maps: list[Object] = [{"metadata": {"name": f"map-{n}"}, "data": {"a": text}} for n in range(5)]
    await create_all(scene, kinds.CONFIG_MAPS, maps)
    volumes = [{"name": f"v{n}", "configMap": {"name": f"map-{n}"}} for n in range(5)]
    await run_all(scene, [kit.pod(f"follower-{n}", volumes=volumes) for n in range(10)])
    begin()
    for number in itertools.count():
        body = {"data": {"n": str(number)}}
        await scene.tenant.patch(kinds.CONFIG_MAPS, f"map-{number % 5}", body, ATTACKER)
        await asyncio.sleep(0.1)


async def deployments(scene: Scene, begin: Begin) -> None:
    """Scale a Deployment to fifty pods and to none, every five seconds."""
    template = kit.pod("burst")
    await scene.tenant.create(kinds.DEPLOYMENTS, kit.deployment("burst", 0, template), ATTACKER)
    begin()
    for number in itertools.count():
        body = {"spec": {"replicas": 50 * (number % 2)}}
        await scene.tenant.patch(kinds.DEPLOYMENTS, "burst", body, ATTACKER)
        await asyncio.sleep(5)


async def log_streams(scene: Scene, begin: Begin) -> None:
    """Read a log of 200 MB on fifty streams, as fast as it comes, again and again."""
    for name in scenes.TARGETS:
        await asyncio.to_thread(_write_long_log, kwok.loud_log(scene.fleet.folder / name))

    pod = kit.pod("talks")
    pod["spec"]["containers"][0]["name"] = kwok.LOUD
    await scene.tenant.create(kinds.PODS, pod, ATTACKER)
    await kit.until_one(scene.tenant, kinds.PODS, "talks", ATTACKER, is_running, 60)
    path = f"{kinds.PODS.path(ATTACKER)}/talks/log"
    begin()

    async def read(_number: int) -> None:
        async with scene.tenant.stream("GET", path, query={}, silence=30) as response:
            async for _chunk in response.content.iter_any():
                pass

    await at_once(50, read)


def _write_long_log(path: Path) -> None:
    lines = kwok.log_line("y" * 100, datetime.now(UTC)) * 1000
    with path.open("w") as log:
        for _ in range(200_000_000 // len(lines)):
            log.write(lines)


async def targets(scene: Scene, begin: Begin) -> None:
    """Make ten Targets that lead nowhere, and delete them, as fast as it goes."""
    begin()
    for number in itertools.count():
        name = f"nowhere-{number % 10}"
        body = {"metadata": {"name": name}, "spec": {"kubeconfigSecret": {"name": "none"}}}
        with suppress(AlreadyExists, NotFound):  # the last one of that name is not gone yet
            await scene.tenant.create(kinds.TARGETS, body, ATTACKER)
            await asyncio.sleep(0.1)
            await scene.tenant.delete(kinds.TARGETS, name, ATTACKER)


async def informational_answers(scene: Scene, begin: Begin) -> None:
    """Have ten Targets whose server answers each request with 100,000 informational answers."""
    async with informational(scene.fleet) as kubeconfig:
        secret = {"metadata": {"name": "flood"}, "stringData": {"config": kubeconfig}}
        await scene.tenant.create(kinds.SECRETS, secret, ATTACKER)
        spec = {"kubeconfigSecret": {"name": "flood"}}
        for number in range(10):
            body = {"metadata": {"name": f"flood-{number}"}, "spec": spec}
            await scene.tenant.create(kinds.TARGETS, body, ATTACKER)

        begin()
        await asyncio.Event().wait()


async def policy_flips(scene: Scene, begin: Begin) -> None:
    """Change every ten seconds where the pods of twenty Deployments belong."""
    policy: Object = {
        "metadata": {"name": "flips"},
        "spec": {
            "selector": {"matchLabels": {"flips": "yes"}},
            "mode": "Spread",
            "reschedule": {"when": ["PolicyChanged"]},
            "targets": [{"cluster": scenes.TARGETS[0], "weight": 1}],
        },
    }
    await scene.tenant.create(kinds.PLACEMENT_POLICIES, policy, ATTACKER)
    for number in range(20):
        template = kit.pod(f"flips-{number}")
        deployment = kit.deployment(f"flips-{number}", 2, template)
        deployment["spec"]["template"]["metadata"]["labels"]["flips"] = "yes"
        await scene.tenant.create(kinds.DEPLOYMENTS, deployment, ATTACKER)

    await until_running(scene, 40)
    begin()
    for number in itertools.count():
        body = {"spec": {"targets": [{"cluster": scenes.TARGETS[number % 2], "weight": 1}]}}
        await scene.tenant.patch(kinds.PLACEMENT_POLICIES, "flips", body, ATTACKER)
        await asyncio.sleep(10)


ATTACKS: Final[dict[str, Attack]] = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        yaml_by_dry_runs,
        reviews_by_strangers,
        large_reviews,
        costly_policies,
        unschedulable_pods,
        locked_targets,
        expressions,
        statuses,
        followed_objects,
        deployments,
        log_streams,
        targets,
        informational_answers,
        policy_flips,
        *floods.ALL,
        *churn.ALL,
    )
}


async def _main(folder: Path, name: str) -> None:
    fleet = Fleet(folder)
    async with scenes.tenant(fleet, ATTACKER) as tenant:
        await ATTACKS[name](Scene(fleet, tenant), lambda: print(BEGUN, flush=True))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), sys.argv[2]))
