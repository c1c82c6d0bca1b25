"""Another agent of a fleet's c1, a process on this machine, beside the one that the fleet runs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import yaml

from tests import kit
from tests.kit import ROOT, Fleet

PORTS = {"webhook": 19443, "extender": 19444, "health": 18080}


@asynccontextmanager
async def running(
    fleet: Fleet, address: str, folder: Path, **ports: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run another agent of c1 at `address`, with `ports` besides `PORTS`; inside, it is ready."""
    config = folder / "agent.yaml"
    head = {"apiVersion": "vnode.dev/v1alpha1", "kind": "AgentConfiguration"}
    config.write_text(yaml.safe_dump({**head, "ports": {**PORTS, **ports}}))
    words = ["agent", "--kubeconfig", str(fleet.folder / "c1" / "vnode.kubeconfig")]
    words += ["--cluster-name", "c1", "--advertise-address", address, "--config", str(config)]
    with (folder / "agent.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "vnode", *words),
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    try:
        await _until_ready(address)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _until_ready(address: str) -> None:
    async with asyncio.timeout(kit.PATIENCE), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://{address}:{PORTS['health']}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass

            await asyncio.sleep(0.2)  # a process that starts has no event
