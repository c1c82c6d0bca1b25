"""The table that a person reads. Pure: a run in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.bench import figures
from tests.bench.figures import PLAIN, VNODE, BenchmarkRun, Phase

_RARE = 0.05  # requests a pod below which a kind of request is only summed up


def text(run: BenchmarkRun) -> str:
    """Return all that is worth reading of a run."""
    machine = (
        f"vnode {run.vnode}, Kubernetes {run.kubernetes}, Python {run.python}, {run.cores} cores, "
        f"{run.nodes} kwok nodes a cluster, {run.started}"
    )
    parts = [
        machine,
        "Seconds from create; others = cores that other programs took meanwhile",
        grid(_TIMES, map(_times, run.phases)),
        "Requests a pod, by API server",
        _requests(run.phases),
        *_on_real_kubelet(run),
        "CPU milliseconds a pod, and MiB of RSS at the end of the last burst",
        _processes(run.phases),
        f"NOT ALL WAS MEASURED: {run.failure}" if run.failure else "",
        f"NOT MEASURED ON A REAL KUBELET: {run.real_failure}" if run.real_failure else "",
        grid(("aim", "limit", "measured", ""), map(aim, figures.aims(run))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_TIMES = ("", "bound p50", "p90", "p99", "Running p50", "p90", "p99", "created/s", "bound/s",
          "Running/s", "gone in", "others")  # fmt: skip


def _times(phase: Phase) -> list[str]:
    bound, running = phase.bound, phase.running
    quantiles = (bound.p50, bound.p90, bound.p99, running.p50, running.p90, running.p99)
    return [
        phase.name,
        *(f"{seconds:.3f}" for seconds in quantiles),
        *(f"{rate:.1f}" for rate in (phase.create_rate, phase.bound_rate, phase.running_rate)),
        f"{phase.deleted:.1f} s",
        f"{phase.others:.2f}",
    ]


def _requests(phases: Sequence[Phase]) -> str:
    """Return a row for each kind of request of each API server, a column for each phase."""
    rows = []
    for cluster in sorted({cluster for phase in phases for cluster in phase.requests}):
        kinds = sorted({kind for phase in phases for kind in phase.requests.get(cluster, ())})
        shares = {k: [phase.requests.get(cluster, {}).get(k, 0) for phase in phases] for k in kinds}
        shown = [kind for kind in kinds if max(shares[kind]) >= _RARE]
        rows += [[f"{cluster} {kind}", *map(_share, shares[kind])] for kind in shown]
    rows.append(["all, with rarer ones", *(f"{phase.requests_per_pod:.1f}" for phase in phases)])
    return grid(("", *(phase.name for phase in phases)), rows)


def _on_real_kubelet(run: BenchmarkRun) -> list[str]:
    if not run.real:
        return []

    return ["Requests a pod on a real kubelet, by API server", _requests(run.real)]


def _share(value: float) -> str:
    return f"{value:.2f}" if value else ""


def _processes(phases: Sequence[Phase]) -> str:
    names = sorted({name for phase in phases for name in phase.processes})
    last = {name: usage for phase in phases for name, usage in phase.processes.items()}
    rows = []
    for name in names:
        used = [phase.processes.get(name) for phase in phases]
        spent = [
            f"{1000 * u.cpu / p.pods:.1f}" if u else "" for u, p in zip(used, phases, strict=True)
        ]
        rows.append([name, *spent, f"{last[name].rss:.0f}"])
    rows.append(["benchmark", *(f"{1000 * p.bench_cpu / p.pods:.1f}" for p in phases), ""])
    return grid(("", *(phase.name for phase in phases), "MiB"), rows)


def aim(one: figures.Aim) -> list[str]:
    """Return a row of the table of aims."""
    sign = "<=" if one.most else ">="
    return [
        one.text,
        f"{sign} {one.limit:g}",
        f"{one.measured:.3g}",
        "ok" if one.reached else "MISSED",
    ]


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table: columns as wide as needed, the first to the left, numbers to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def progress(phase: Phase) -> str:
    """Return one line when a phase is over."""
    wrong = len(phase.lost) + len(phase.doubled)
    return (
        f"{phase.name}: {phase.bound_rate:.1f} pods/s, bound p50 {phase.bound.p50:.3f} s, "
        f"{phase.requests_per_pod:.1f} requests a pod" + (f", {wrong} WRONG" if wrong else "")
    )


def ratio(run: BenchmarkRun, pods: int) -> float | None:
    """Return vnode's rate as a share of the plain scheduler's, in bursts of that size."""
    ours, plain = run.rate(VNODE, pods), run.rate(PLAIN, pods)
    return ours / plain if ours and plain else None
