"""Makes scores of what targets report as free: on one node, and in the whole cluster. Pure.

The names and the scale are those of Open Cluster Management's collector: `gpuNodeAvailable` is -100
for nothing and 100 for `most` or more. A name with `Relative` at its end has the same amount on a
scale from the least to the most of all targets that are for the same pods, which fits large
clusters as well as small ones.

Nodes that are not ready or cordoned are in no report. Of CPU and memory, nodes with a taint that
keeps ordinary pods away do not count; of devices they do, since such nodes are tainted for the
sake of the pods that need these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vnode.api import resources, rows, score_maths
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, Rows
from vnode.scores.config import PublishedResource

NODE, CLUSTER, RELATIVE = "NodeAvailable", "ClusterAvailable", "Relative"


@dataclass(frozen=True, slots=True)
class ReportedRoom:
    """What a target has last reported as free."""

    free: Resources
    """On all nodes together."""
    largest: Resources
    """For each resource, the most on one node."""
    rows: Rows | None = None
    """Node by node; None for a target that does not say it so."""


def scores(
    reports: Mapping[str, ReportedRoom],
    published: Iterable[PublishedResource],
    namespaces: Mapping[str, str],
) -> dict[str, dict[str, int]]:
    """Return the scores of each target that has reported, by name.

    `namespaces` are those of Targets that are for one only: what their targets claim to have makes
    no other's scores smaller. A target whose amount is not known, for want of rows, lacks the
    scores of that resource.
    """
    found: dict[str, dict[str, int]] = {target: {} for target in reports}
    for each in published:
        amounts: dict[str, dict[str, int]] = {NODE: {}, CLUSTER: {}}
        for target, report in reports.items():
            for scope, amount in _amounts(report, each):
                amounts[scope][target] = amount

        for scope, by_target in amounts.items():
            relative = _relative(by_target, namespaces)
            for target, amount in by_target.items():
                absolute = score_maths.absolute(amount, each.amount)
                found[target][f"{each.name}{scope}"] = absolute
                found[target][f"{each.name}{scope}{RELATIVE}"] = relative[target]

    return found


def _relative(amounts: Mapping[str, int], namespaces: Mapping[str, str]) -> dict[str, int]:
    """Compare targets for all with one another, and those of a namespace with these and its own."""
    groups: dict[str, dict[str, int]] = {"": {}}
    for target, amount in amounts.items():
        groups.setdefault(namespaces.get(target, ""), {})[target] = amount

    common = groups.pop("")
    ends = common and {" least": min(common.values()), " most": max(common.values())}
    found = score_maths.relative(common)
    for own in groups.values():
        compared = score_maths.relative({**ends, **own})
        found |= {target: compared[target] for target in own}

    return found


def _amounts(report: ReportedRoom, each: PublishedResource) -> Iterator[tuple[str, int]]:
    """Yield how much is free on one node, and in the cluster."""
    name, known = each.resource, report.rows
    if known is not None and known.complete and name in known.resources:
        nodes = [alike for alike in known.alike if _counts(alike, each, known.keys)]
        if each.model or len(nodes) < len(known.alike):
            yield NODE, max((row.free.get(name, 0) for a in nodes for row in a.rows), default=0)
            yield CLUSTER, sum(row.count * row.about_free(name) for a in nodes for row in a.rows)
            return

    if not each.model:
        yield NODE, report.largest.get(name, 0)
        yield CLUSTER, report.free.get(name, 0)


def _counts(alike: AlikeNodes, each: PublishedResource, keys: Iterable[str]) -> bool:
    if each.model and rows.model_of(alike.labels, keys) != each.model:
        return False

    return resources.is_extended(each.resource) or not alike.taints
