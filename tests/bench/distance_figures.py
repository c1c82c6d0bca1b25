"""What `make bench-distance` measures, the aims it is held to, and the tables of both. Pure."""

from __future__ import annotations

import msgspec

from tests.bench.figures import Aim, Phase, Quantiles
from tests.bench.report import aim, grid

WORK = 0.05  # seconds that a pod may take beside its round trips


class Stream(msgspec.Struct, frozen=True):
    """An exec session, or the last line of a log, from the far target and through the source."""

    what: str
    straight: Quantiles
    through: Quantiles


class DistanceRun(msgspec.Struct, frozen=True):
    """One run: the same pods with targets that are near, far, and near again."""

    started: str
    cores: int
    python: str
    vnode: str
    kubernetes: str
    round_trip: float
    """Seconds to a far target and back."""
    near: list[Phase]
    far: list[Phase]
    near_again: list[Phase]
    streams: list[Stream]

    @property
    def single(self) -> Phase:
        """Pods that were created one at a time, with far targets."""
        return next(phase for phase in self.far if not phase.burst)

    @property
    def rates(self) -> tuple[float, float]:
        """Pods bound a second of the burst, with near targets (the mean) and with far ones."""
        near = [phase.bound_rate for phase in (*self.near, *self.near_again) if phase.burst]
        far = [phase.bound_rate for phase in self.far if phase.burst]
        return sum(near) / len(near), sum(far) / len(far)

    @property
    def aims(self) -> list[Aim]:
        """What the project promises itself."""
        near, far = self.rates
        limit, bound = round(3 * self.round_trip + WORK, 3), self.single.bound.p50
        return [
            Aim("one pod to bound, p50, s", limit, bound, most=True),
            Aim("burst, far as a share of near", 0.8, round(far / near, 2), most=False),
            *(
                Aim(f"{one.what}: round trips more", 1.5, self.more(one), most=True)
                for one in self.streams
            ),
        ]

    def more(self, stream: Stream) -> float:
        """Return how many round trips more than straight it takes through the source."""
        return round((stream.through.p50 - stream.straight.p50) / self.round_trip, 2)


def text(run: DistanceRun) -> str:
    """Return all that is worth reading of a run."""
    phases = [
        (where, phase)
        for where, all_of in (("near", run.near), ("far", run.far), ("near", run.near_again))
        for phase in all_of
    ]
    machine = (
        f"vnode {run.vnode}, Kubernetes {run.kubernetes}, Python {run.python}, {run.cores} cores, "
        f"{run.started}; far: {run.round_trip * 1000:.0f} ms there and back"
    )
    parts = [
        machine,
        "Seconds from create, with targets that are near and far",
        grid(("", "bound p50", "p99", "Running p50", "p99", "bound/s"), map(_pods, phases)),
        "Seconds with far targets, straight to the target and through the source",
        grid(("", "straight p50", "through p50"), map(_stream, run.streams)),
        grid(("aim", "limit", "measured", ""), map(aim, run.aims)),
    ]
    return "\n\n".join(parts) + "\n"


def _pods(one: tuple[str, Phase]) -> list[str]:
    where, phase = one
    times = (phase.bound.p50, phase.bound.p99, phase.running.p50, phase.running.p99)
    name = f"{where}, {phase.pods}" if phase.burst else f"{where}, 1 x {phase.pods}"
    return [name, *(f"{seconds:.3f}" for seconds in times), f"{phase.bound_rate:.1f}"]


def _stream(one: Stream) -> list[str]:
    return [one.what, f"{one.straight.p50:.3f}", f"{one.through.p50:.3f}"]
