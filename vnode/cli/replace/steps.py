"""Decides what is left to do until a Target is the wanted cluster: pure.

It follows from which cluster the Target is by its status, which one its Secret leads to, and what
is still bound to its virtual node. So the steps of a run that was ended come out again, without
those that are done.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from vnode.api.errors import ConfigError
from vnode.cli.replace.former import ClusterAnswer


class ReplacementStep(Enum):
    """One thing to do; each may be done again."""

    DRAIN = auto()  # cordon the virtual node, and evict its pods
    CLEAN_UP = auto()  # delete what is left of us in the former cluster
    SWITCH = auto()  # connect the wanted cluster under the Target's name
    AWAIT_CONNECTION = auto()
    UNCORDON = auto()
    AWAIT_OWNERS = auto()  # until no pod is bound whose delegate went with the former cluster
    END_SOURCE = auto()  # revoke what the source may do in the former cluster


_AFTER_SWITCH: Final = (
    ReplacementStep.SWITCH,
    ReplacementStep.AWAIT_CONNECTION,
    ReplacementStep.UNCORDON,
)


@dataclass(frozen=True, slots=True)
class ReplacementState:
    """What is known before the first step.

    `recorded`, `wanted` and `own` are UIDs of clusters: the one that the Target has been, the one
    that it shall be, and the source. `leads_to` is what answers to the Target's credentials.
    `bound` counts the pods on its virtual node that a drain has to end.
    """

    target: str
    recorded: str
    wanted: str
    own: str
    leads_to: ClusterAnswer
    bound: int
    lost: bool

    @property
    def former(self) -> str:
        """The UID of the cluster that is to be replaced, "" if the Target has been none."""
        return self.recorded or self.leads_to.uid


def decide(now: ReplacementState) -> tuple[ReplacementStep, ...]:
    """Return what is left to do, in order; ConfigError, with the cure, if it would do harm."""
    if not now.wanted:
        raise ConfigError(
            "the new cluster does not tell which one it is: use credentials (--target) that may "
            "get its namespace kube-system, whose UID tells it from the former one"
        )

    if now.wanted == now.own:
        raise ConfigError(
            "--target leads to the source itself: pass the kubeconfig, or the context, of the new "
            "cluster"
        )

    if now.former in ("", now.wanted):
        return (*_AFTER_SWITCH, ReplacementStep.AWAIT_OWNERS, ReplacementStep.END_SOURCE)

    return _after_disaster(now) if now.lost else _in_order(now)


def _after_disaster(now: ReplacementState) -> tuple[ReplacementStep, ...]:
    answer = now.leads_to
    if answer.answers and answer.uid != now.wanted:
        raise ConfigError(
            f"the cluster of {now.target} answers, so its pods may run there, and would run twice: "
            "leave --lost out, to have them end in order; or cut that cluster off for good, and "
            "run this again"
        )

    return (*_AFTER_SWITCH, ReplacementStep.AWAIT_OWNERS)


def _in_order(now: ReplacementState) -> tuple[ReplacementStep, ...]:
    answer = now.leads_to
    rest = (ReplacementStep.DRAIN, *_AFTER_SWITCH, ReplacementStep.END_SOURCE)
    if answer.uid == now.former:
        return (ReplacementStep.DRAIN, ReplacementStep.CLEAN_UP, *rest[1:])

    if not now.bound:
        return rest

    if answer.uid:
        raise ConfigError(
            f"the Secret of {now.target} leads to another cluster already ({answer.uid}), so that "
            f"its {now.bound} pods cannot end in the former one ({now.former}): put the kubeconfig "
            "of that one back into the Secret. Or, if it never comes back, pass --lost"
        )

    raise ConfigError(
        f"the cluster of {now.target} cannot be asked ({answer.why}), so its {now.bound} pods "
        "cannot end there: see that it answers. Or, if it never comes back, pass --lost: then "
        "their owners replace them"
    )


def leaves_former(now: ReplacementState) -> bool:
    """Tell whether the steps leave what the source has in the former cluster as it is."""
    if now.former in ("", now.wanted):
        return False

    return now.lost or now.leads_to.uid not in (now.former, now.wanted)
