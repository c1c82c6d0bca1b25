"""Draws placement policies, and the moments at which they begin, change and end. Pure.

They have a randomness of their own, so that a seed gives the same pods and faults with and without
them. Half of the schedules have none: then nothing may be different.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from vnode.api import keys, kinds
from vnode.api.objects import Object
from vnode.planning.failover import Failover, PreservedValue

APP: Final = "app"
PRESERVED: Final = "example.com/preserved"  # an annotation
UNKNOWN: Final = "moon"  # a cluster that no Target leads to
SHARE: Final = 0.42  # of the schedules with two targets have policies: half of all the time
_STABLE: Final = 0.5  # of those: they are there from the beginning, and stay
_CALM: Final = 0.5  # of those: nothing fails
_TIGHT: Final = 0.3  # of those: a target is full at once
_SHRINKS: Final = 0.5  # of those: ReplicaSets lose pods at the end
_ROLLS: Final = 0.3  # of those: Deployments are rolled out, at the end or at any time as well
_STEADY: Final = 0.07  # of those: an hour follows, which costs as much as ten other schedules
_LOSES: Final = 0.4  # of those: policies say what becomes of pods whose cluster is lost
_LOST_AT: Final = (5.0, 35.0)  # seconds
_MOVES: Final = 0.25  # of those that are left: a policy has pods of a Deployment moved
_MOVED_AT: Final = (10.0, 30.0)  # seconds
_WRONG: Final = 0.1  # of the policies: they name a cluster that does not exist


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A policy as it is from then on; without a spec it is deleted."""

    at: float
    name: str
    spec: Object | None

    def __str__(self) -> str:
        return f"+{self.at:.1f}s policy {self.name}: {self.spec or 'delete'}"

    def object(self, namespace: str) -> Object:
        """Build the object."""
        metadata = {"name": self.name, "namespace": namespace}
        return {
            "apiVersion": kinds.PLACEMENT_POLICIES.api_version,
            "kind": kinds.PLACEMENT_POLICIES.kind,
            "metadata": metadata,
            "spec": self.spec,
        }


@dataclass(frozen=True, slots=True)
class Cordon:
    """A virtual node takes no more pods, for so many seconds."""

    at: float
    target: str
    seconds: float

    def __str__(self) -> str:
        return f"+{self.at:.1f}s cordon {self.target} for {self.seconds:.1f}s"


@dataclass(frozen=True, slots=True)
class Loss:
    """A virtual node has the taints of one that is not ready, for so many seconds.

    If it `is_real`, the source cannot reach the target meanwhile; else Kubernetes is wrong.
    """

    at: float
    target: str
    seconds: float
    is_real: bool

    def __str__(self) -> str:
        what = "lose" if self.is_real else "taint"
        return f"+{self.at:.1f}s {what} {self.target} for {self.seconds:.1f}s"


@dataclass(frozen=True, slots=True)
class Rollout:
    """All Deployments have another template."""

    at: float

    def __str__(self) -> str:
        return f"+{self.at:.1f}s roll out all Deployments"


@dataclass(frozen=True, slots=True)
class PolicySchedule:
    """All that happens about policies in one schedule."""

    changes: tuple[PolicyChange, ...] = ()
    cordons: tuple[Cordon, ...] = ()
    calm: bool = False
    """Whether nothing else may fail, so that more can be promised."""
    tight: str = ""
    """A target that has room for one small pod only, so that others overflow; "" for none."""
    moved: str = ""
    """A target out of which pods are moved; "" for none."""
    shrinks: bool = False
    """Whether Deployments lose half of their pods once all is at rest."""
    steady: bool = False
    """Whether an hour is to pass at the end in which nothing happens."""
    losses: tuple[Loss, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    last_rollouts: int = 0
    """So many rollouts begin one after the other once all is at rest."""

    @property
    def are_stable(self) -> bool:
        """Whether all policies are there before any pod, and nothing about them changes."""
        is_quiet = not self.cordons and not self.losses
        return is_quiet and all(change.at <= 0.0 for change in self.changes)

    @property
    def failover(self) -> Failover | None:
        """What the webhook finds in all policies, as if it never knew of their changes."""
        specs = [change.spec or {} for change in self.changes]
        found = [spec["failover"] for spec in specs if "failover" in spec]
        keeps = any("preserve" in each for each in found)
        return Failover(preserve=(PreservedValue(PRESERVED),) if keeps else ()) if found else None


def draw(
    seed: int,
    workloads: Sequence[str],
    targets: Sequence[str],
    moment: Callable[[], float],
    share: float,
) -> PolicySchedule:
    """Draw those of a seed, of which that share has any; `moment` draws when something happens."""
    dice = random.Random(f"policies {seed}")
    if dice.random() >= share:
        return PolicySchedule()

    stable = dice.random() < _STABLE
    changes: list[PolicyChange] = []
    for number in range(dice.choice((1, 1, 2))):
        name = f"p{number}"
        changes.append(
            PolicyChange(
                0.0 if stable or dice.random() < 0.5 else moment(),
                name,
                _spec(dice, workloads, targets),
            )
        )
        for _ in range(0 if stable else dice.choice((0, 1, 1, 2))):
            spec = None if dice.random() < 0.4 else _spec(dice, workloads, targets)
            changes.append(PolicyChange(moment(), name, spec))

    tight = dice.choice(targets) if dice.random() < _TIGHT else ""
    if tight:
        changes = [PolicyChange(0.0, "p0", _overflowing(dice, targets))]

    cordons = () if stable or dice.random() < 0.6 else (_cordon(dice, targets, moment),)
    moving = random.Random(f"moves {seed}")
    moved = moving.choice(targets) if not tight and moving.random() < _MOVES else ""
    if moved:
        changes, cordons = _moving(moving, moved, targets), ()

    drawn = PolicySchedule(
        tuple(sorted(changes, key=lambda change: change.at)),
        cordons,
        dice.random() < _CALM,
        tight,
        moved,
        dice.random() < _SHRINKS,
        dice.random() < _STEADY,
    )
    drawn = _rolling_out(random.Random(f"rollouts {seed}"), drawn, moment)
    failing = random.Random(f"failover {seed}")
    return _failing_over(failing, drawn, targets) if failing.random() < _LOSES else drawn


def _rolling_out(
    dice: random.Random, policies: PolicySchedule, moment: Callable[[], float]
) -> PolicySchedule:
    if dice.random() >= _ROLLS:
        return policies

    during = tuple(Rollout(moment()) for _ in range(dice.choice((0, 0, 1, 2))))
    return replace(policies, rollouts=during, last_rollouts=dice.choice((1, 1, 2)))


def _failing_over(
    dice: random.Random, policies: PolicySchedule, targets: Sequence[str]
) -> PolicySchedule:
    """Have policies replace the pods of clusters that are lost."""

    def amended(change: PolicyChange) -> PolicyChange:
        if change.spec is None or dice.random() < 0.2:
            return change

        purge = dice.choice(("Graceful", "Graceful", "Immediate", "Never"))
        failover: Object = {"purge": purge}
        if purge != "Never":
            failover["tolerationSeconds"] = dice.choice((0, 1, 3))
            failover["maxEvictionsPerMinute"] = dice.choice((10, 60, 600))

        if purge == "Graceful":
            failover["gracePeriodSeconds"] = dice.choice((1, 20, 600))

        if dice.random() < 0.5:
            failover["preserve"] = [{"annotation": PRESERVED, "fromStatus": "podIP"}]

        return replace(change, spec={**change.spec, "failover": failover})

    losses = (
        Loss(
            dice.uniform(*_LOST_AT),
            dice.choice(targets),
            dice.choice((4.0, 10.0, 30.0)),
            dice.random() < 0.6,
        )
        for _ in range(dice.choice((1, 2, 3)))
    )
    changes = tuple(amended(change) for change in policies.changes)
    return replace(policies, changes=changes, losses=tuple(losses))


def _cordon(dice: random.Random, targets: Sequence[str], moment: Callable[[], float]) -> Cordon:
    return Cordon(moment(), dice.choice(targets), dice.choice((2.0, 10.0, 40.0)) * dice.random())


def _spec(dice: random.Random, workloads: Sequence[str], targets: Sequence[str]) -> Object:
    mode = dice.choice(("Spread", "Spread", "Spread", "Fill", "Single", "Any"))
    labels = {} if dice.random() < 0.5 else {APP: dice.choice(workloads)}
    spec: Object = {"selector": {"matchLabels": labels}, "mode": mode}
    if dice.random() < 0.7:
        spec["groupBy"] = APP

    if dice.random() < _WRONG:
        spec["clusters"] = {"names": [UNKNOWN]}

    if mode == "Single" and dice.random() < 0.4:
        spec["drain"] = [{"cluster": dice.choice(targets), "maxReplicas": dice.choice((0, 0, 1))}]
        spec["failback"] = {"maxConcurrent": dice.choice((1, 2, "50%"))}

    if mode not in ("Spread", "Fill"):
        return spec

    after = f"{dice.choice((5, 15, 30))}s"
    spec["overflow"] = {
        "afterUnschedulableFor": after,
        "maxCandidates": dice.choice((1, 2, 2, 3, 3)),
    }
    if dice.random() < 0.3:
        spec["overflow"]["keepUnschedulable"] = False

    if dice.random() < 0.7:
        mode = dice.choice(("Placeholder", "Probe", "Probe", "Never"))
        stabilization = f"{dice.choice((2, 5, 20))}s"
        most = dice.choice((1, 2, "50%"))
        spec["failback"] = {"mode": mode, "stabilization": stabilization, "maxConcurrent": most}

    if dice.random() < 0.2:
        spec["drain"] = [{"cluster": dice.choice(targets), "maxReplicas": dice.choice((0, 1))}]

    if dice.random() < 0.85:
        spec["targets"] = _targets(dice, targets, is_weighted=dice.random() < 0.8)

    return spec


def _moving(dice: random.Random, moved: str, targets: Sequence[str]) -> list[PolicyChange]:
    """Draw a policy that has fewer pods in one target after a while, and perhaps more again."""
    mode = dice.choice(("Spread", "Spread", "Fill", "Single"))
    most = {"maxConcurrent": dice.choice((1, 1, 2, "50%"))}
    begin: Object = {"selector": {"matchLabels": {}}, "mode": mode, "failback": most}
    drain = {"drain": [{"cluster": moved, "maxReplicas": dice.choice((0, 0, 1))}]}
    first, then = begin, {**begin, **drain}
    if mode != "Single" and dice.random() < 0.5:
        others = [name for name in targets if name != moved]
        begin = {**begin, "reschedule": {"when": ["PolicyChanged"]}}
        first = {**begin, "targets": [{"cluster": moved}]}
        then = {**begin, "targets": [{"cluster": name} for name in others]}

    at = dice.uniform(*_MOVED_AT)
    changes = [PolicyChange(0.0, "p0", first), PolicyChange(at, "p0", then)]
    if dice.random() < 0.3:
        changes.append(PolicyChange(at + dice.uniform(1.0, 10.0), "p0", first))

    return changes


def _overflowing(dice: random.Random, targets: Sequence[str]) -> Object:
    """Draw the policy of a workload that is larger than one of its targets."""
    overflow = {
        "afterUnschedulableFor": f"{dice.choice((5, 15))}s",
        "keepUnschedulable": dice.random() < 0.7,
    }
    return {
        "selector": {"matchLabels": {}},
        "mode": dice.choice(("Spread", "Spread", "Fill")),
        "overflow": overflow,
        "targets": [{"cluster": name, "weight": dice.choice((1, 1, 2))} for name in targets],
    }


def _targets(dice: random.Random, targets: Sequence[str], *, is_weighted: bool) -> list[Object]:
    if dice.random() < 0.2:
        labels = {keys.TARGET_NAME: dice.choice(targets)}
        return [{"selector": {"matchLabels": labels}, **_share(dice, is_weighted)}]

    chosen = dice.sample(list(targets), k=dice.choice((1, len(targets), len(targets))))
    return [{"cluster": name, **_share(dice, is_weighted)} for name in chosen]


def _share(dice: random.Random, is_weighted: bool) -> Object:
    share: Object = {"weight": dice.choice((0, 1, 1, 2, 4))} if is_weighted else {}
    minimum = dice.choice((0, 0, 0, 1, 2))
    if minimum:
        share["minReplicas"] = minimum

    if dice.random() < 0.25:
        share["maxReplicas"] = minimum + dice.choice((0, 1, 2))

    if dice.random() < 0.25:
        share["priority"] = dice.choice((1, 2))

    return share
