"""Writes the table of docs/metrics.md from the registry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
_BEGIN, _END = "<!-- written by hack/metrics -->", "<!-- until here -->"
_SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("", "_sum", "_count"),
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as Prometheus sees it; `series` are the names that expressions use."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...]
    series: tuple[str, ...]


def described() -> list[Metric]:
    """Return all metrics of an agent, ours first, sorted by name."""
    from vnode.agent import replica  # noqa: F401 - declares what lives in single modules
    from vnode.telemetry import metrics

    declared = {
        name: collector for collector, names in _collectors(metrics.REGISTRY) for name in names
    }
    found = []
    for family in metrics.REGISTRY.collect():
        suffixes = _SUFFIXES.get(family.type, ("",))
        series = tuple(f"{family.name}{suffix}" for suffix in suffixes)
        collector = declared.get(family.name)
        labels = tuple(getattr(collector, "_labelnames", ()))
        bounds = tuple(getattr(collector, "_upper_bounds", ()))
        name = series[0] if family.type == "counter" else family.name
        found.append(Metric(name, family.type, family.documentation, labels, bounds, series))

    return sorted(found, key=lambda metric: (not metric.name.startswith("vnode_"), metric.name))


def _collectors(registry: Any) -> Any:
    return registry._collector_to_names.items()


def table() -> str:
    """Return our metrics as a table in Markdown."""
    lines = ["| Metric | Type | Labels | |", "|---|---|---|---|"]
    for metric in described():
        if metric.name.startswith("vnode_"):
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            lines.append(f"| `{metric.name}` | {metric.type} | {labels} | {metric.help} |")

    return "\n".join(lines)


def updated(page: str) -> str:
    """Return the page with its table updated."""
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return f"{before}{_BEGIN}\n\n{table()}\n\n{_END}{after}"
