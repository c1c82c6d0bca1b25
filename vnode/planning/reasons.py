"""Says in words why a planned pod has its place, for whoever asks later. Pure.

A plan is of the moment: an hour later there are other pods, weights and clusters. So the reason is
written down with the binding, and nobody has to guess it.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects, visible
from vnode.api.objects import Object
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.policy import Mode, Policy
from vnode.planning.seats import Share

_LONGEST: Final = 300  # characters that are shown: users may write annotations, too


def of(pod: Object) -> str:
    """Return why a bound pod has its place, as it was written down; "" if it was not."""
    written = objects.annotations(pod).get(keys.PLACED, "")
    return visible.line(written[:_LONGEST]) if objects.node_name(pod) else ""


def by_weight(policy: Policy, share: Share) -> str:
    """Return what divides the pods of a policy: ` by weight 40`; "" where nothing does."""
    if policy.mode is not Mode.SPREAD:
        return ""

    return " by capacity" if policy.by_capacity else f" by weight {share.weight}"


def planned(policy: Policy, share: Share, choice: ClusterChoice, aim: str) -> str:
    """Return the reason for a place by a plan; "" if the plan has none for it.

    `aim` is what messages call the planned cluster.
    """
    opened = dict(choice.opened).get(share.node)
    if share.node == choice.aim:
        count = choice.planned.get(share.node, 0)
        here = f"planned here: {count} of {choice.replicas}{by_weight(policy, share)}"
    elif opened is not None and choice.is_surge:
        here = f"overflowed from {aim}, which pods of an older revision still fill"
    elif share.node == choice.directed:
        here = f"overflowed from {aim}, and moved here from a cluster of a lower priority"
    elif opened is not None and choice.since is not None:
        here = f"overflowed from {aim} after {duration(opened - choice.since)}"
    else:
        return ""

    return f"{here} ({policy.name})"


def together(policy: Policy, workload: str, *, is_first: bool) -> str:
    """Return the reason for a place by the mode Single."""
    if is_first:
        return f"first pod of {workload}, which chooses the cluster of all ({policy.name})"

    return f"with the other pods of {workload} ({policy.name})"


def scored(policy: Policy) -> str:
    """Return the reason for a place by the mode Any."""
    return f"best score of the clusters that the policy includes ({policy.name})"


def duration(seconds: float) -> str:
    """Return a duration as policies write it, by full seconds: `90s`, `2m`, `1h30m`."""
    whole = max(0, round(seconds))
    if whole < 120 and whole % 60:
        return f"{whole}s"

    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
