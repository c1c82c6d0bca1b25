"""Decides which Targets a set makes, and how those go whose profile is gone. No I/O.

A Target goes in order: its profile is gone for a moment (changes that belong together arrive one by
one), then it is marked and its virtual node cordoned; for `after` nothing else happens, then its
pods are evicted and it is deleted. A new Target of the set connects before that, so that pods have
somewhere to go where one profile replaces another. All that must last is on the Target (since when)
and on the set (whether removals are held), so that another leader goes on where this one was.

The guard: if most profiles go within a minute, that is rather a fault of the inventory than the end
of most clusters. Then nothing is removed until somebody confirms it, or the profiles are back. What
the set has removed within that minute counts as well: where `after` is short, profiles that go one
by one would else never be most of what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from vnode.api import names, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.targetsets.spec import RemovalPolicy, TargetSetSpec

SETTLE: Final = 2.0
"""Seconds for which a profile must be gone before anything is done."""
WINDOW: Final = 60.0
"""Seconds within which profiles that go count as going at once."""
CONNECTING: Final = 300.0
"""Seconds for which drains wait for a new Target of the set to connect."""
GUARDED: Final = 3
"""Targets of a set below which there is no guard."""

NAME_TAKEN: Final = "NameTaken"
NAME_INVALID: Final = "NameInvalid"
NOT_CREATED: Final = "NotCreated"
NOT_SERVED: Final = "InventoryNotServed"
EMPTY: Final = "InventoryEmpty"
MOST_GONE: Final = "MostProfilesGone"


Names = dict[str, None]
"""Names in an order, each of which is found at once, however many there are."""


class SetOutcome(NamedTuple):
    """A reason in one word, and a message for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class MadeTarget:
    """A Target that the set has made; the profile is `namespace/name`."""

    name: str
    profile: str
    gone_since: datetime | None = None
    """As it is marked."""
    connecting_since: datetime | None = None
    """Since when it is there, None if it has connected ever."""


@dataclass(frozen=True, slots=True)
class SetFacts:
    """All that a decision depends on.

    `selected` has the profiles that the set selects, by `namespace/name`; None while the cluster
    does not serve profiles. `noticed` says since when this process misses the profiles of made
    Targets, by name of these. `taken` has the names of other Targets, each with who made it.
    """

    spec: TargetSetSpec
    selected: Mapping[str, Object] | None
    made: Mapping[str, MadeTarget]
    taken: Mapping[str, str]
    noticed: Mapping[str, datetime]
    now: datetime
    is_empty: bool = False
    """The inventory has no profile at all where the set looks."""
    removed: Mapping[str, datetime] = field(default_factory=dict)
    """Targets that the set has removed lately, by name, and since when their profiles are gone."""
    held: bool = False
    """Removals were held when this was last decided."""
    confirmed: bool = False


@dataclass(slots=True)
class SetDecision:
    """What is to be done; Targets by their names."""

    create: dict[str, str] = field(default_factory=dict)
    """The profiles of Targets that are to be made."""
    refused: dict[str, SetOutcome] = field(default_factory=dict)
    """Why there is no Target of a selected profile, by profile."""
    gone: Names = field(default_factory=dict)
    """Targets whose profile is not selected."""
    back: Names = field(default_factory=dict)
    """Marked Targets that are not to go any more."""
    mark: Names = field(default_factory=dict)
    cordoned: Names = field(default_factory=dict)
    """Marked Targets whose virtual nodes are to be cordoned, and stay so for now."""
    drain: Names = field(default_factory=dict)
    """Marked Targets whose pods are to be evicted, and which then are to be deleted."""
    held: SetOutcome | None = None
    """Why nothing is removed."""
    wait: float | None = None
    """Seconds until the next step is due."""


def decide(facts: SetFacts) -> SetDecision:
    """Decide what is to be done for a set now."""
    decision = SetDecision()
    for _ in steps(facts, decision):
        pass

    return decision


def steps(facts: SetFacts, decision: SetDecision) -> Iterator[None]:
    """Fill in a new decision, step by step: there may be thousands of profiles and Targets."""
    selected = facts.selected or {}
    yield from _choose(selected, facts, decision)
    decision.gone = {t.name: None for t in facts.made.values() if t.profile not in selected}
    yield
    decision.held = _hold(facts, decision.gone)
    connecting = _until_connected(facts)
    for target in facts.made.values():
        yield
        if target.profile in selected or facts.spec.policy is RemovalPolicy.ORPHAN:
            if target.gone_since is not None:
                decision.back[target.name] = None
        else:
            _step(target, connecting, facts, decision)


def refusal_of_name(name: str) -> SetOutcome | None:
    """Return why no Target can have the name of a profile; None if one can."""
    if TargetKey("", name).fits_label and names.SUBDOMAIN.fullmatch(name):
        return None

    return SetOutcome(
        NAME_INVALID,
        f"a Target cannot be called {name[:80]!r}: names of Targets have at most "
        f"{names.LABEL_LIMIT} characters; have the cluster manager give the profile a shorter name",
    )


def _choose(
    selected: Mapping[str, Object], facts: SetFacts, decision: SetDecision
) -> Iterator[None]:
    """Choose for each name whose Target it is: the profile that has one, else the oldest."""
    by_name: dict[str, list[str]] = {}
    for key, profile in sorted(selected.items(), key=lambda item: _age(*item)):
        by_name.setdefault(objects.name(profile), []).append(key)

    for name, profiles in by_name.items():
        yield
        made = facts.made.get(name)
        if refusal := refusal_of_name(name):
            decision.refused |= dict.fromkeys(profiles, refusal)
            continue

        if made is None and name in facts.taken:
            outcome = SetOutcome(
                NAME_TAKEN, f"{facts.taken[name]}: delete it, or leave it as it is"
            )
            decision.refused |= dict.fromkeys(profiles, outcome)
            continue

        first = made.profile if made is not None else profiles[0]
        if made is None:
            decision.create[name] = first

        for other in profiles:
            if other != first:
                decision.refused[other] = SetOutcome(
                    NAME_TAKEN,
                    f"Target {name} already belongs to ClusterProfile {first}: rename one of the "
                    "profiles",
                )


def _age(key: str, profile: Object) -> tuple[str, str]:
    return objects.created(profile), key


def _hold(facts: SetFacts, gone: Iterable[str]) -> SetOutcome | None:
    """Return why removals are held; None if they are not."""
    lost = list(gone)
    if not lost or facts.spec.policy is RemovalPolicy.ORPHAN:
        return None

    if facts.selected is None:
        return SetOutcome(
            NOT_SERVED, "this cluster no longer serves ClusterProfiles: removals are held"
        )

    if facts.confirmed:
        return None

    if facts.is_empty:
        return SetOutcome(EMPTY, "no ClusterProfile is left: removals are held")

    # Those that are not marked yet would be so at once, however long that had to wait.
    marks = [facts.made[name].gone_since for name in lost]
    removed = [m for n, m in facts.removed.items() if n not in facts.made and is_recent(m, facts)]
    recent = len(removed) + sum(mark is None or is_recent(mark, facts) for mark in marks)
    all_of_them = len(facts.made) + len(removed)
    if facts.held or (all_of_them >= GUARDED and 2 * recent > all_of_them):
        already = f" ({len(removed)} Targets are removed already)" if removed else ""
        return SetOutcome(
            MOST_GONE,
            f"{len(lost) + len(removed)} of {all_of_them} ClusterProfiles are gone, most of them "
            f"within a minute: removals are held{already}",
        )

    return None


def is_recent(since: datetime, facts: SetFacts) -> bool:
    """Tell whether a profile that is gone since then counts for the guard."""
    return (facts.now - since).total_seconds() < WINDOW


def _seconds_gone(facts: SetFacts, name: str) -> float:
    since = facts.made[name].gone_since or facts.noticed.get(name, facts.now)
    return (facts.now - since).total_seconds()


def _step(target: MadeTarget, connecting: float, facts: SetFacts, decision: SetDecision) -> None:
    """Decide the next step of a Target whose profile is gone; `connecting` are the seconds for
    which no pods are evicted."""
    elapsed = _seconds_gone(facts, target.name)
    if target.gone_since is None:
        if decision.held is None and elapsed >= SETTLE:
            decision.mark[target.name] = None
        elif decision.held is None:
            _look_again(decision, SETTLE - elapsed)

        return

    left = max(facts.spec.after - elapsed, connecting)
    if decision.held is None and facts.spec.policy is RemovalPolicy.DRAIN and left <= 0:
        decision.drain[target.name] = None
        return

    decision.cordoned[target.name] = None
    if decision.held is None and facts.spec.policy is RemovalPolicy.DRAIN:
        _look_again(decision, left)


def _until_connected(facts: SetFacts) -> float:
    """Return the seconds for which Targets that have not connected yet hold up drains; none of
    those that have failed to for long, and may never."""
    selected = facts.selected or {}
    return max(
        (
            CONNECTING - (facts.now - target.connecting_since).total_seconds()
            for target in facts.made.values()
            if target.connecting_since is not None and target.profile in selected
        ),
        default=0.0,
    )


def _look_again(decision: SetDecision, seconds: float) -> None:
    decision.wait = seconds if decision.wait is None else min(decision.wait, seconds)
