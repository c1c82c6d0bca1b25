"""What the API servers, the processes and the machine say they have done, as counters.

Everything is read twice and subtracted; nothing here disturbs what is measured in between.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.fleetlib.fleet import LocalFleet
from tests.bench.figures import ProcessUsage
from vnode.kube.client import Client

_QUIET: Final = 1.5  # seconds without a request for a pod that mean that all is done
_NEVER_QUIET: Final = 20.0  # seconds after which the end is counted all the same
_LINE: Final = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_LONG: Final = frozenset({"WATCH", "CONNECT"})  # counted when they end, whenever that is
DRY_RUN: Final = " (dry run)"  # at the end of what was asked for and not done
PODS: Final = ("pods", "podchaperons", "events")

Requests = Mapping[str, Counter[str]]  # cluster -> `VERB resource` -> number


def parse_requests(text: str) -> Counter[str]:
    """Count the requests in an API server's metrics by `VERB resource[/subresource]`."""
    found: Counter[str] = Counter()
    for line in _LINE.finditer(text):
        labels = dict(_LABEL.findall(line[1]))
        if labels["verb"] not in _LONG and labels["resource"]:
            what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            tried = DRY_RUN if labels.get("dry_run") else ""
            found[f"{labels['verb']} {what}{tried}"] += int(float(line[2]))
    return found


async def requests(clients: Mapping[str, Client]) -> dict[str, Counter[str]]:
    """Return what each API server has answered since it was started."""
    answers = await asyncio.gather(*(_metrics(client) for client in clients.values()))
    return dict(zip(clients, map(parse_requests, answers), strict=True))


async def _metrics(client: Client) -> str:
    async with client.stream("GET", "/metrics", query={}, silence=30) as response:
        return await response.text()


async def requests_when_quiet(clients: Mapping[str, Client]) -> dict[str, Counter[str]]:
    """Return what `requests` does, once nobody writes about pods any more: events come late.

    Counters cannot be watched, so this one asks again and again.
    """
    before, deadline = await requests(clients), time.monotonic() + _NEVER_QUIET
    while True:
        await asyncio.sleep(_QUIET)
        now = await requests(clients)
        if _about_pods(now) == _about_pods(before) or time.monotonic() > deadline:
            return now
        before = now


def _about_pods(counts: Requests) -> int:
    return sum(
        number
        for kinds in counts.values()
        for what, number in kinds.items()
        if what.partition(" ")[2].partition("/")[0] in PODS
    )


def rates(before: Requests, after: Requests, seconds: float) -> dict[str, dict[str, float]]:
    """Return the requests a second that each cluster answered, by `VERB resource`."""
    return {
        cluster: {
            what: round(number / seconds, 3) for what, number in (after[cluster] - was).items()
        }
        for cluster, was in before.items()
    }


def per_pod(
    before: Requests,
    after: Requests,
    idle: Mapping[str, Mapping[str, float]],
    seconds: float,
    pods: int,
) -> dict[str, dict[str, float]]:
    """Return the requests that each pod cost, less what the same time costs when idle.

    Requests that are rarer than 1 in 50 pods are dropped, and leases, which are no pod's.
    """
    found: dict[str, dict[str, float]] = {}
    for cluster, was in before.items():
        quiet = idle.get(cluster, {})
        found[cluster] = {
            what: round(share, 2)
            for what, number in sorted((after[cluster] - was).items())
            if (share := (number - quiet.get(what, 0) * seconds) / pods) >= 0.02
            and not what.endswith(" leases")
        }
    return found


@dataclass(frozen=True)
class Work:
    """CPU seconds up to now: of each process of the fleet, of this one, of the whole machine."""

    fleet: dict[str, ProcessUsage]
    bench: float
    machine: float

    def since(self, before: Work) -> dict[str, ProcessUsage]:
        """Return what each process that ran at both times has used in between."""
        return {
            name: ProcessUsage(round(usage.cpu - before.fleet[name].cpu, 2), usage.rss)
            for name, usage in self.fleet.items()
            if name in before.fleet
        }

    def others(self, before: Work) -> float:
        """Return the CPU seconds since `before` of all programs but the fleet's and this one."""
        ours = sum(usage.cpu for usage in self.since(before).values())
        return max(0.0, self.machine - before.machine - (self.bench - before.bench) - ours)


def work(fleet: LocalFleet) -> Work:
    """Read /proc for everything that the fleet runs now."""
    found = {
        f"{cluster.name} {name}": usage(process.identity.pid)
        for cluster in fleet.state().clusters.values()
        for name, process in cluster.processes.items()
        if process.identity is not None and process.alive
    }
    times = os.times()
    return Work(found, times.user + times.system, _machine())


def usage(pid: int) -> ProcessUsage:
    """Read what a process has used up to now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    rss = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return ProcessUsage(
        (int(fields[11]) + int(fields[12])) / _TICKS, int(rss[1]) // 1024 if rss else 0
    )


def _machine() -> float:
    """Return the busy seconds of all cores: all but idle and iowait; user time includes guests."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICKS
