"""The audit logs of a fleet's agents, read line by line as they are written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests import kit
from tests.kit import Fleet
from vnode.telemetry import audit

AuditLine = dict[str, Any]


def lines_of(text: str) -> Iterator[AuditLine]:
    """Yield the lines of the audit log in what an agent has written."""
    for line in text.splitlines():
        if audit.NAME in line:
            decoded = json.loads(line)
            if decoded["logger"] == audit.NAME:
                yield decoded


def written(fleet: Fleet) -> list[AuditLine]:
    """Return all that the agents have written so far."""
    logs = sorted(fleet.folder.glob("*/agent.log"))
    return [line for log in logs for line in lines_of(log.read_text())]


def is_of_nobody(line: AuditLine) -> bool:
    """Tell whether a line does not say on whose behalf the agent did it."""
    return not line.get("onBehalfOf") and "object" in line


async def until_written(
    fleet: Fleet, cluster: str, wanted: Callable[[AuditLine], bool]
) -> AuditLine:
    """Return the first line of a cluster's agent that is as wanted, once it is there."""
    log = fleet.folder / cluster / "agent.log"
    process = await asyncio.create_subprocess_exec(
        "tail", "-n", "+1", "-F", str(log), stdout=asyncio.subprocess.PIPE, limit=2**20
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(kit.PATIENCE):
            while True:
                line = (await process.stdout.readline()).decode()
                found = next(filter(wanted, lines_of(line)), None)
                if found is not None:
                    return found
    finally:
        process.kill()
        await process.wait()
