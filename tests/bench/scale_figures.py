"""What `make bench-scale` measures, the aims it is held to, and the tables of both. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tests.bench.accounts import DRY_RUN
from tests.bench.figures import Aim, ProcessUsage, Quantiles
from tests.bench.report import aim, grid

AGENT = "agent"  # how the fleet calls the process
_WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_NO_OBJECTS = frozenset(
    {"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}
)
"""Written all the time (leases), or stored nowhere."""


class Rest(msgspec.Struct, frozen=True):
    """A while in which nobody did anything."""

    what: str
    seconds: float
    processes: dict[str, ProcessUsage]
    requests: dict[str, dict[str, float]]
    """Cluster -> `VERB resource` -> requests a second; watches are not counted."""
    connections: int
    """Open TCP connections of the source's agent."""
    others: float
    """Cores that programs took which belong neither to the fleet nor to the benchmark."""

    def share(self, process: str) -> float:
        """Return how many cores a process took."""
        return self.processes[process].cpu / self.seconds


class Lag(msgspec.Struct, frozen=True):
    """From the request that changes a delegate's status until the proxy's shows it."""

    what: str
    times: Quantiles


class Restart(msgspec.Struct, frozen=True):
    """The source's agent killed and started; seconds from the start of the process."""

    what: str
    ready: float
    leads: float
    placed: float
    """Seconds until a pod that was created as soon as the agent was ready runs in a target."""
    writes: dict[str, dict[str, int]]
    """Of a second restart, with no new pod: cluster -> `VERB resource` -> number."""

    @property
    def needless(self) -> int:
        """Writes to what nobody had changed. The heartbeats of kwok's nodes are left out."""
        return sum(
            number
            for kinds in self.writes.values()
            for what, number in kinds.items()
            if what != "PATCH nodes/status"
        )


class ScaleRun(msgspec.Struct, frozen=True):
    """One run of the benchmark."""

    started: str
    cores: int
    python: str
    vnode: str
    kubernetes: str
    pods: int
    targets: int
    created: float
    """Seconds from the first create until all pods of the first part ran."""
    connected: float
    """Seconds from the creation of the many Targets until all their nodes were Ready."""
    rests: list[Rest]
    lags: list[Lag]
    restarts: list[Restart]

    @property
    def aims(self) -> list[Aim]:
        """What the project promises itself."""
        return [
            *(_idle(rest) for rest in self.rests),
            *(
                Aim(f"{one.what}: restart to a placed pod, s", 10, one.placed, most=True)
                for one in self.restarts
            ),
            *(
                Aim(f"{one.what}: needless writes of a restart", 0, one.needless, most=True)
                for one in self.restarts
            ),
            Aim("most memory of an agent, MiB", 300, self.most_memory, most=True),
        ]

    @property
    def most_memory(self) -> float:
        """MiB of the largest agent in any rest."""
        return max(usage.rss for rest in self.rests for _, usage in agents(rest))


def _idle(rest: Rest) -> Aim:
    shares = (rest.share(name) for name, _ in agents(rest))
    return Aim(f"{rest.what}: busiest agent, cores", 0.03, max(shares), most=True)


def agents(rest: Rest) -> Iterable[tuple[str, ProcessUsage]]:
    """Return the agents of all clusters, by the name of the process."""
    return [(name, one) for name, one in rest.processes.items() if name.endswith(f" {AGENT}")]


def writes(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Count the writes between two readings of the API servers' counters.

    Leases, reviews and dry runs are left out.
    """
    return {
        cluster: {
            what: number - before[cluster].get(what, 0)
            for what, number in sorted(counts.items())
            if number > before[cluster].get(what, 0) and _is_write(what)
        }
        for cluster, counts in after.items()
    }


def _is_write(what: str) -> bool:
    verb, _, resource = what.partition(" ")
    return (
        verb in _WRITES
        and not what.endswith(DRY_RUN)
        and resource.partition("/")[0] not in _NO_OBJECTS
    )


def text(run: ScaleRun) -> str:
    """Return all that is worth reading of a run."""
    parts = [
        _machine(run),
        "At rest: cores and MiB of each agent, requests a second to each API server",
        grid(_resting_head(run), map(_resting, run.rests)),
        "Requests a second at rest, the last time, by API server",
        _requests(run.rests[-1]),
        "Seconds from a delegate's change to its proxy's",
        grid(
            ("", "p50", "p90", "p99", "longest"),
            (
                [one.what, *(f"{value:.3f}" for value in msgspec.structs.astuple(one.times))]
                for one in run.lags
            ),
        ),
        "The source's agent killed and started: seconds, and writes of a restart without a new pod",
        grid(("", "ready", "leads", "placed", "writes"), map(_restarting, run.restarts)),
        grid(("aim", "limit", "measured", ""), map(aim, run.aims)),
    ]
    return "\n\n".join(parts) + "\n"


def _machine(run: ScaleRun) -> str:
    return (
        f"vnode {run.vnode}, Kubernetes {run.kubernetes}, Python {run.python}, {run.cores} cores, "
        f"{run.started}\n\n"
        f"{run.pods} pods ran after {run.created:.1f} s; the nodes of {run.targets} more Targets "
        f"were Ready after {run.connected:.1f} s"
    )


def _resting_head(run: ScaleRun) -> list[str]:
    names = [name for name, _ in agents(run.rests[0])]
    pairs = (title for name in names for title in (name, "MiB"))
    clusters = (f"{cluster} req/s" for cluster in run.rests[0].requests)
    return ["", *pairs, *clusters, "connections", "others"]


def _resting(rest: Rest) -> list[str]:
    cells = [rest.what]
    for name, usage in agents(rest):
        cells += [f"{100 * rest.share(name):.1f} %", f"{usage.rss:.0f}"]

    cells += [f"{sum(kinds.values()):.1f}" for kinds in rest.requests.values()]
    return [*cells, str(rest.connections), f"{rest.others:.2f}"]


def _requests(rest: Rest) -> str:
    rows = [
        [f"{cluster} {what}", f"{rate:.2f}"]
        for cluster, kinds in rest.requests.items()
        for what, rate in sorted(kinds.items(), key=lambda pair: -pair[1])
        if rate >= 0.1
    ]
    return grid(("", "a second"), rows)


def _restarting(one: Restart) -> list[str]:
    lines = [
        f"{number} {cluster} {what}"
        for cluster, kinds in one.writes.items()
        for what, number in kinds.items()
    ]
    times = (f"{seconds:.1f}" for seconds in (one.ready, one.leads, one.placed))
    return [one.what, *times, ", ".join(lines) or "none"]
