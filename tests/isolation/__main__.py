"""`python -m tests.isolation`: what a bystander notices of each attack, as a table.

Before each attack the bystander runs some pods in peace, and as many during it. Of each step the
99th percentile under attack is compared with that of all pods in peace of the same run, and with
what it is for pods with which vnode has nothing to do.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from hack.fleetlib import progress
from tests import kit
from tests.isolation import attacks, floods, page, scene
from tests.isolation.bystander import NAMESPACE, Bystander, Times
from tests.isolation.processes import Processes, ProcessWatch
from tests.isolation.report import AttackTimes, cores_table, memory_table, table
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import VnodeError
from vnode.api.kinds import Kind
from vnode.kube import answer_limits

_BEGINS: Final = 120.0  # seconds in which an attack has to be under way
_LEFT: Final[tuple[Kind, ...]] = (
    kinds.DEPLOYMENTS,
    kinds.JOBS,
    kinds.PODS,
    kinds.PLACEMENT_POLICIES,
    kinds.CONFIG_MAPS,
    kinds.TARGETS,
    kinds.SOURCES,
    kinds.SECRETS,
    kinds.SERVICES,
    kinds.REBALANCES,
    kinds.EVENTS,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.NETWORK_POLICIES,
)


def main() -> int:
    """Measure and print; 1 if the bystander had to wait for somebody."""
    options = _parser().parse_args()
    names = options.attack or list(attacks.ATTACKS)
    with (
        tempfile.TemporaryDirectory(prefix="vnode-isolation-") as folder,
        scene.started(Path(folder) / "fleet") as fleet,
    ):
        measured = asyncio.run(_measure(fleet, names, options.pods))

    if options.write:
        page.PAGE.write_text(page.updated(page.PAGE.read_text(), table(measured)))

    print(table(measured), memory_table(measured), cores_table(measured), sep="\n\n")
    return 0 if all(each.is_isolated for each in measured) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.isolation", description=__doc__)
    parser.add_argument(
        "--pods", type=int, default=20, help="of the bystander for each attack (20)"
    )
    parser.add_argument(
        "--attack", action="append", choices=attacks.ATTACKS, help="this one; repeatable (all)"
    )
    parser.add_argument(
        "--write", action="store_true", help="what was measured into the table of docs/security.md"
    )
    return parser


async def _measure(fleet: Fleet, names: list[str], pods: int) -> list[AttackTimes]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(scene.tenant(fleet, NAMESPACE))
        targets = [await stack.enter_async_context(fleet.client(name)) for name in scene.TARGETS]
        bystander = Bystander(client, targets)
        await bystander.run(5)  # what is done once
        watch = ProcessWatch(fleet.folder)
        peace: list[Times] = []
        attacked: dict[str, tuple[Times, Processes]] = {}
        for name in names:
            peace.append(await bystander.run(pods))
            with progress.reported(f"attack {name}"):
                async with _under_attack(fleet, name) as pid, watch.watched(pid) as processes:
                    attacked[name] = await bystander.run(pods), processes

                so_far = AttackTimes(name, attacked[name][0], Times.joined(peace), processes)
                progress.say(table([so_far]).splitlines()[-1])
                progress.say(cores_table([so_far]).splitlines()[-1])
                await _clean(fleet)
                watch.note_after(processes)

    return [
        AttackTimes(name, times, Times.joined(peace), processes)
        for name, (times, processes) in attacked.items()
    ]


@asynccontextmanager
async def _under_attack(fleet: Fleet, name: str) -> AsyncIterator[int]:
    """Run the attack while the block runs; yield the ID of its process."""
    words = ("-m", "tests.isolation.attacks", str(fleet.folder), name)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=kit.ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None, "a pipe"
    try:
        async with asyncio.timeout(_BEGINS):
            said = await process.stdout.readline()

        assert said.decode().strip() == attacks.BEGUN, f"{name} ended before it had begun"
        yield process.pid
        assert process.returncode is None, f"{name} ended by itself"
    finally:
        if process.returncode is None:
            process.kill()

        await process.wait()


async def _clean(fleet: Fleet) -> None:
    """Delete what an attack has left."""
    async with fleet.client(scene.SOURCE) as admin:
        for kind in _LEFT:
            query = {"propagationPolicy": "Background", "gracePeriodSeconds": "0"}
            # The answer has all that is deleted: of costly policies 30 MB.
            path, bound = kind.path(scene.ATTACKER), answer_limits.LIST
            await admin.request("DELETE", path, query=query, bound=bound)

        for pod in await admin.list(kinds.PODS, scene.ATTACKER):
            if floods.HELD in objects.finalizers(pod):
                body = objects.finalizers_patch(pod, objects.finalizers_without(pod, floods.HELD))
                with suppress(VnodeError):  # gone meanwhile, or changed
                    await admin.patch(kinds.PODS, objects.name(pod), body, scene.ATTACKER)

        for kind in (kinds.PODS, kinds.TARGETS):
            await kit.until_gone(admin, kind, scene.ATTACKER, seconds=120)


if __name__ == "__main__":
    sys.exit(main())
