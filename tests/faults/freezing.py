"""Draws how one target freezes while many of its pods are to end: pure.

It takes two steps. In the first, among all else, a crowd of pods comes to a target, and bystanders
to another. In the second the crowd's target answers nothing, its pods are to end, and nothing else
is broken: so the other target has no reason to be slow, and `timing` says whether it was.
"""

from __future__ import annotations

import random

from tests.faults.plan import (
    CROWD,
    SOURCE,
    TARGETS,
    Action,
    Fault,
    Step,
    Trouble,
    Verb,
    WantedWorkload,
    Wish,
    WorkloadKind,
)

BYSTANDERS = 2
_LONGEST = 40.0  # seconds; a request to a target that is frozen waits for thirty
_CHANGES, _STARTS = (0.15, 0.3, 0.5), (0.2, 0.4)  # when in that time, as shares of it


def crowd(wish: Wish) -> WantedWorkload | None:
    """Return the one that a step before has brought."""
    return next((w for w in wish.workloads.values() if w.replicas == CROWD), None)


def gather(dice: random.Random, wish: Wish) -> tuple[list[Action], Wish]:
    """Have a crowd come to one target, and bystanders to another."""
    frozen, other = dice.sample(TARGETS, 2)
    actions: list[Action] = []
    for target, replicas in ((frozen, CROWD), (other, BYSTANDERS)):
        workload, wish = wish.named(
            WantedWorkload("", WorkloadKind.DEPLOYMENT, replicas, on=target)
        )
        actions.append(Action(Verb.CREATE, 0.0, workload))
        wish = wish.with_(workload)

    return actions, wish


def freeze(
    dice: random.Random, wish: Wish, many: WantedWorkload, longest: float
) -> tuple[Step, Wish]:
    """Draw a step in which the crowd is to end while nothing answers for its target.

    Meanwhile pods of the other target show how long changes and starts take there.
    """
    bystanders = _bystanders(wish, many)
    seconds = min(longest, _LONGEST)
    actions = [Action(Verb.REMOVE, 1.0, many)]
    wish = wish.without(many.name)
    for share in _CHANGES:
        number = dice.randrange(BYSTANDERS)
        at = round(share * seconds, 1)
        actions.append(Action(Verb.ANNOTATE_DELEGATE, at, bystanders, number=number))

    for share in _STARTS:
        pod, wish = wish.named(WantedWorkload("", WorkloadKind.POD, on=bystanders.on))
        actions.append(Action(Verb.CREATE, round(share * seconds, 1), pod))
        wish = wish.with_(pod)

    ways = (
        (Trouble.STOP, f"{many.on}/kube-apiserver"),
        (Trouble.FREEZE, f"{SOURCE}>{many.on}"),
    )
    trouble, where = dice.choice(ways)
    fault = Fault(trouble, where, 0.0, seconds)
    return Step(tuple(sorted(actions, key=lambda a: a.at)), (fault,)), wish


def _bystanders(wish: Wish, many: WantedWorkload) -> WantedWorkload:
    """Return those that came with the crowd, hence the latest."""
    found = [
        workload
        for workload in wish.workloads.values()
        if workload.kind is WorkloadKind.DEPLOYMENT and workload.on not in ("", many.on)
    ]
    return max(found, key=lambda workload: int(workload.name.rpartition("-")[2]))
