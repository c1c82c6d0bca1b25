"""What users do and what breaks, step by step, drawn from a seed: pure.

`draw` knows only what the users want by now (`Wish`), never what the clusters made of it, so a seed
gives the same steps each time. Which pod an action hits is a number; whoever acts takes the pod of
that number, modulo how many there are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.faults import freezing
from tests.faults.plan import (
    EVICTIONS,
    FAULT_PROXIES,
    LEAVING,
    MOST_REPLICAS,
    MOST_WORKLOADS,
    NAMES,
    ON_PODS,
    SOURCE,
    TARGETS,
    Action,
    DeviceUse,
    Fault,
    JobTerms,
    Step,
    Thing,
    ThingKind,
    Trouble,
    Verb,
    WantedWorkload,
    Wish,
    WorkloadKind,
)

_USABLE = [
    Thing(name, kind).key for name in NAMES for kind in (ThingKind.CONFIG_MAP, ThingKind.SECRET)
]

_LONG = 0.1  # of all faults; a pod's patience with a lost node is some thirty seconds at least
_CROWDED = 0.15  # of all steps; each takes one more, see `freezing`
_TOGETHER = 0.5  # of all Deployments and StatefulSets with several pods
_STOPPED = 30.0  # seconds at most; users too wait for an API server that is stopped
_EXCHANGED = 20.0  # seconds at most
_EXCHANGES = (Verb.EXCHANGE_SECRET,) * 3
_ON_TARGETS = (Verb.EDIT_TARGET, Verb.ROTATE_TOKEN, Verb.REMOVE_TARGET, *_EXCHANGES)


API_SERVERS = tuple(f"{cluster}/kube-apiserver" for cluster in (SOURCE, *TARGETS))


def processes(agents: Sequence[str]) -> tuple[str, ...]:
    """Return the processes that may be killed where each cluster has these agents.

    Those of the source are there twice, so that they are drawn twice as often.
    """
    return (
        *(f"{cluster}/{agent}" for cluster in (SOURCE, SOURCE, *TARGETS) for agent in agents),
        *(f"{target}/candidate-scheduler" for target in TARGETS),
        *API_SERVERS,
        f"{SOURCE}/kube-controller-manager",
    )


def draw(
    dice: random.Random, wish: Wish, *, longest: float, agents: Sequence[str]
) -> tuple[Step, Wish]:
    """Return the next step, and what users want after it.

    No fault takes longer than `longest` seconds. `agents` are the processes of each cluster's.
    After a step with a crowd comes one in which the crowd's target freezes, and nothing else.
    """
    if (crowd := freezing.crowd(wish)) is not None:
        return freezing.freeze(dice, wish, crowd, longest)

    actions: list[Action] = []
    if len(wish.workloads) < MOST_WORKLOADS and dice.random() < _CROWDED:
        actions, wish = freezing.gather(dice, wish)

    touched: set[str] = set().union(*(action.about for action in actions))
    for _ in range(dice.randint(2, 8)):
        action, wish = _action(dice, wish, touched)
        if action is not None:
            actions.append(action)
            touched |= action.about
            actions += _disturb(dice, action)

    faults = tuple(_fault(dice, longest, processes(agents)) for _ in range(dice.randint(2, 6)))
    return Step(tuple(sorted(actions, key=lambda a: a.at)), faults), wish


def _disturb(dice: random.Random, created: Action) -> list[Action]:
    """Have pods of a Job that was just created ended; after the step there would be none."""
    workload = created.workload
    if created.verb is not Verb.CREATE or workload is None or workload.kind is not WorkloadKind.JOB:
        return []

    verbs = EVICTIONS if workload.job.ignores_disruptions else (*EVICTIONS, *ON_PODS)
    return [
        Action(
            dice.choice(verbs),
            round(created.at + dice.uniform(1, workload.job.seconds), 1),
            workload,
            number=dice.randrange(MOST_REPLICAS),
        )
        for _ in range(dice.randint(0, 2))
    ]


def _action(dice: random.Random, wish: Wish, touched: set[str]) -> tuple[Action | None, Wish]:
    """Draw one action on what no other action of the step is about."""
    at = round(dice.uniform(0, 8), 1)
    free = [w for name, w in sorted(wish.workloads.items()) if name not in touched]
    if dice.random() < 0.25:
        return _thing(dice, wish, touched, at)

    chance = dice.random()
    if not free or (chance < 0.4 and len(wish.workloads) < MOST_WORKLOADS):
        workload, wish = _new(dice, wish)
        return Action(Verb.CREATE, at, workload), wish.with_(workload)

    if chance > 0.85:
        verb = dice.choice((*_ON_TARGETS, *LEAVING))
        action = Action(verb, at, target=dice.choice(TARGETS))
        if verb is Verb.EXCHANGE_SECRET:
            action = replace(action, seconds=round(dice.uniform(2, _EXCHANGED), 1))

        return (None if action.about & touched else action), wish

    chosen = dice.choice(free)
    if chance > 0.75 or chosen.kind is WorkloadKind.JOB:
        return Action(Verb.REMOVE, at, chosen), wish.without(chosen.name)

    if chance > 0.55 and chosen.kind is not WorkloadKind.POD:
        chosen = _changed(dice, chosen)
        return Action(Verb.CHANGE, at, chosen), wish.with_(chosen)

    verb, number = dice.choice(ON_PODS), dice.randrange(MOST_REPLICAS)
    after = wish.without(chosen.name) if chosen.kind is WorkloadKind.POD else wish
    return Action(verb, at, chosen, number=number), after


def _thing(
    dice: random.Random, wish: Wish, touched: set[str], at: float
) -> tuple[Action | None, Wish]:
    """Return a ConfigMap, Secret or Service is made, changed, labelled or removed."""
    kind = dice.choice(tuple(ThingKind))
    names = sorted(wish.workloads) if kind is ThingKind.SERVICE else NAMES
    thing = Thing(dice.choice(names), kind) if names else None
    if thing is None or thing.key in touched:
        return None, wish

    known = wish.things.get(thing.key)
    if known is not None and dice.random() < 0.3:
        left = {key: other for key, other in wish.things.items() if key != thing.key}
        return Action(Verb.REMOVE_THING, at, thing=known), replace(wish, things=left)

    if known is not None and dice.random() < 0.4:
        thing = replace(known, label=known.label + 1)
    elif known is not None:
        thing = replace(known, version=known.version + 1)

    things = {**wish.things, thing.key: thing}
    return Action(Verb.PUT_THING, at, thing=thing), replace(wish, things=things)


def _new(dice: random.Random, wish: Wish) -> tuple[WantedWorkload, Wish]:
    kind = dice.choice(
        (
            WorkloadKind.POD,
            WorkloadKind.DEPLOYMENT,
            WorkloadKind.DEPLOYMENT,
            WorkloadKind.STATEFUL_SET,
            WorkloadKind.JOB,
        )
    )
    many = dice.randint(1, MOST_REPLICAS if kind is WorkloadKind.DEPLOYMENT else 4)
    lasts = kind in (WorkloadKind.DEPLOYMENT, WorkloadKind.STATEFUL_SET)
    workload = WantedWorkload(
        "",
        kind,
        replicas=1 if kind is WorkloadKind.POD else many,
        hopeless=kind is WorkloadKind.POD and dice.random() < 0.3,
        patience=dice.choice((0, 0, 5)),
        farewell=dice.choice((0, 0, 3)),
        uses=tuple(sorted(dice.sample(_USABLE, dice.randint(0, 2)))),
        budget=lasts and dice.random() < 0.5,
        gang=dice.randint(2, many) if lasts and many > 1 and dice.random() < _TOGETHER else 0,
        device=dice.choice((DeviceUse.NONE, *DeviceUse)),
        job=_terms(dice) if kind is WorkloadKind.JOB else JobTerms(),
    )
    return wish.named(workload)


def _terms(dice: random.Random) -> JobTerms:
    """Draw the terms of a Job.

    Kubernetes lets no Job with a podFailurePolicy replace pods before they have ended.
    """
    ignores = dice.random() < 0.5
    return JobTerms(
        seconds=dice.choice((2, 5, 12)),
        indexed=dice.random() < 0.5,
        ignores_disruptions=ignores,
        replaces_failed=ignores or dice.random() < 0.5,
    )


def _changed(dice: random.Random, workload: WantedWorkload) -> WantedWorkload:
    if dice.random() < 0.4:
        return replace(workload, version=workload.version + 1)

    most = MOST_REPLICAS if workload.kind is WorkloadKind.DEPLOYMENT else 4
    return replace(workload, replicas=dice.randint(max(workload.gang, 1), most))


def _fault(dice: random.Random, longest: float, killable: Sequence[str]) -> Fault:
    at, short = round(dice.uniform(0, 5), 1), min(longest, dice.expovariate(1 / 8)) + 1
    seconds = round(dice.uniform(1, longest) if dice.random() < _LONG else short, 1)
    trouble = dice.choice((Trouble.KILL, *Trouble))
    if trouble is Trouble.KILL:
        return Fault(trouble, dice.choice(killable), at, min(seconds, 10.0))

    if trouble is Trouble.STOP:
        return Fault(trouble, dice.choice(API_SERVERS), at, min(seconds, _STOPPED))

    fault_proxy = dice.choice((*FAULT_PROXIES, *FAULT_PROXIES[1:3]))
    match trouble:
        case Trouble.SLOW:
            return Fault(
                trouble, fault_proxy, at, seconds, amount=round(dice.uniform(0.05, 0.5), 2)
            )
        case Trouble.ERRORS:
            status = dice.choice((409, 410, 429, 500))
            share = round(dice.uniform(0.1, 0.8), 1)
            return Fault(trouble, fault_proxy, at, seconds, amount=share, status=status)
        case Trouble.LOSE:
            return Fault(trouble, fault_proxy, at, seconds, amount=round(dice.uniform(0.1, 0.6), 1))
        case _:
            return Fault(trouble, fault_proxy, at, seconds)
