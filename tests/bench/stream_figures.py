"""What `make bench-streams` measures, the aims it is held to, and the tables of both. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tests.bench.figures import Aim, Quantiles
from tests.bench.report import aim, grid

MIB = 1024 * 1024


class Copies(msgspec.Struct, frozen=True):
    """The same bytes copied by turns straight to the target and through the virtual node."""

    direction: str
    mib: int
    straight: list[float]
    """Seconds of each copy."""
    through: list[float]
    agent_cpu: float
    """CPU seconds of the source's agent in all copies through it."""
    peak_growth: float
    """MiB that the agent's highest RSS during the copies is above what it was before."""

    @property
    def ratio(self) -> float:
        """The rate through the virtual node as a share of that of the straight copies."""
        return sum(self.straight) / sum(self.through)

    def rate(self, seconds: Sequence[float]) -> float:
        """Return the rate over all copies in MiB a second, from the seconds of each copy."""
        return self.mib * len(seconds) / sum(seconds)


class Latency(msgspec.Struct, frozen=True):
    """Seconds of `kubectl exec POD -- true`, by turns."""

    straight: Quantiles
    through: Quantiles

    @property
    def added(self) -> float:
        """How much longer it takes through the virtual node, by medians."""
        return self.through.p50 - self.straight.p50


class Crowd(msgspec.Struct, frozen=True):
    """Many sessions or log followers at once, through the virtual node or straight."""

    what: str
    straight: bool
    wanted: int
    served: int
    """Those that got everything: every echo and an orderly end, or every line."""
    opened: float
    """Seconds until the last one was open."""
    lag: Quantiles
    """Seconds: there and back of a line, or from the container's writing to the follower."""
    rss: float
    """MiB of the source's agent at the end."""


class StreamsRun(msgspec.Struct, frozen=True):
    """One run."""

    started: str
    cores: int
    python: str
    vnode: str
    kubernetes: str
    busy: float
    """Cores that other programs took just before the run."""
    copies: list[Copies]
    latency: Latency
    crowds: list[Crowd]


def aims(run: StreamsRun) -> list[Aim]:
    """Return what the project promises itself, and what came out."""
    return [
        *(Aim(f"rate {c.direction}, of straight", 0.75, c.ratio, most=False) for c in run.copies),
        Aim("exec true, added p50 in s", 0.015, run.latency.added, most=True),
        Aim("RSS growth in a copy, MiB", 32, max(c.peak_growth for c in run.copies), most=True),
        *(
            Aim(f"{c.what} served, of {c.wanted}", c.wanted, c.served, most=False)
            for c in run.crowds
            if not c.straight
        ),
    ]


def text(run: StreamsRun) -> str:
    """Return all that is worth reading of a run."""
    machine = (
        f"vnode {run.vnode}, Kubernetes {run.kubernetes}, Python {run.python}, {run.cores} cores, "
        f"of which others took {run.busy:.2f}; {run.started}"
    )
    return (
        "\n\n".join(
            [
                machine,
                grid(_COPIES, map(_copies, run.copies)),
                grid(_LATENCY, _latency(run.latency)),
                grid(_CROWDS, map(_crowd, run.crowds)),
                grid(("aim", "limit", "measured", ""), map(aim, aims(run))),
            ]
        )
        + "\n"
    )


_COPIES = (
    "copies by exec",
    "straight MiB/s",
    "through MiB/s",
    "ratio",
    "agent CPU s/GiB",
    "RSS +MiB",
)
_LATENCY = ("exec true, ms", "p50", "p90", "p99", "max")
_CROWDS = ("at once", "served", "all open in s", "lag p50 ms", "p90", "p99", "agent MiB")


def _copies(one: Copies) -> list[str]:
    gib = one.mib * len(one.through) / 1024
    return [
        f"{len(one.through)} x {one.mib} MiB {one.direction}",
        f"{one.rate(one.straight):.0f}",
        f"{one.rate(one.through):.0f}",
        f"{one.ratio:.2f}",
        f"{one.agent_cpu / gib:.1f}",
        f"{one.peak_growth:.0f}",
    ]


def _latency(one: Latency) -> list[list[str]]:
    return [
        [name, *(f"{1000 * value:.0f}" for value in msgspec.structs.astuple(quantiles))]
        for name, quantiles in (("straight", one.straight), ("through", one.through))
    ]


def _crowd(one: Crowd) -> list[str]:
    lag = one.lag
    return [
        f"{one.wanted} {one.what}, {'straight' if one.straight else 'through'}",
        str(one.served),
        f"{one.opened:.2f}",
        *(f"{1000 * value:.0f}" for value in (lag.p50, lag.p90, lag.p99)),
        f"{one.rss:.0f}",
    ]
