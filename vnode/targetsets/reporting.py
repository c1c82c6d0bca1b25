"""Builds the status of a set: how many profiles and Targets, what becomes of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from vnode.api import objects, status_conditions
from vnode.api.objects import Object, Objects
from vnode.targets import conditions
from vnode.targetsets.deciding import NOT_SERVED, MadeTarget, SetDecision, SetOutcome

READY: Final = "Ready"
HELD: Final = "RemovalHeld"
MOST_LISTED: Final = 100
"""Targets in a status; of others there is only the number."""

TARGETS_READY: Final = "TargetsReady"
TARGETS_NOT_READY: Final = "TargetsNotReady"
NO_PROFILES: Final = "NoProfiles"

PROFILE_GONE: Final = "ProfileGone"
CORDONED: Final = "Cordoned"
DRAINING: Final = "Draining"
_CONFIRM: Final = (
    'to remove their Targets, annotate the set: vnode.dev/confirm-removal="{generation}"; to keep '
    "them, restore the ClusterProfiles"
)
_RETURN: Final = "install the inventory's CRD again, and restore the ClusterProfiles"


def is_held(obj: Object) -> bool:
    """Tell whether a set's status says that most profiles went, and removals are held."""
    return objects.is_condition_true(obj, HELD)


def entries(
    decision: SetDecision,
    selected: Mapping[str, Object],
    made: Mapping[str, MadeTarget],
    targets: Mapping[str, Object],
) -> Objects:
    """Return what is said of each Target, and each profile that has none, by name."""
    found = [
        _entry(name, made[name].profile, _reason_of(name, decision, target), target)
        for name, target in targets.items()
        if name in made
    ]
    found += [
        _entry(objects.name(selected[key]), key, outcome.reason, {})
        for key, outcome in decision.refused.items()
    ]
    return sorted(found, key=lambda entry: (entry["name"], entry["profile"]))


def states(decision: SetDecision, listed: Objects) -> dict[str, int]:
    """Return how many of a set's `entries` are in each state: ready, unready, refused, gone."""
    found = dict.fromkeys(("ready", "unready", "refused", "gone"), 0)
    for entry in listed:
        if entry["profile"] in decision.refused:
            found["refused"] += 1
        elif entry["name"] in decision.gone:
            found["gone"] += 1
        else:
            found["ready" if entry["ready"] else "unready"] += 1

    return found


def _entry(name: str, profile: str, reason: str, target: Object) -> Object:
    return {"name": name, "profile": profile, "ready": objects.is_ready(target), "reason": reason}


def _reason_of(name: str, decision: SetDecision, target: Object) -> str:
    if name in decision.drain:
        return DRAINING

    if name in decision.cordoned or name in decision.mark:
        return CORDONED

    if name in decision.gone:
        return PROFILE_GONE

    return str((objects.condition(target, conditions.READY) or {}).get("reason") or "Pending")


def status(
    obj: Object, decision: SetDecision, found: int, listed: Objects, now: datetime
) -> Object:
    """Return the fields of the set's status; conditions are None if they stay."""
    ready = sum(entry["ready"] for entry in listed)
    first = next(iter(decision.refused.items()), None)
    if first is not None:
        key, outcome = first
        more = f" (and {len(decision.refused) - 1} more)" if len(decision.refused) > 1 else ""
        outcome = SetOutcome(
            outcome.reason, f"profile {key} has no Target: {outcome.message}{more}"
        )
    elif not found and not listed:
        outcome = SetOutcome(
            NO_PROFILES, "no ClusterProfile matches: see kubectl get clusterprofiles"
        )
    elif ready < len(listed):
        wrong = next(entry for entry in listed if not entry["ready"])
        outcome = SetOutcome(
            TARGETS_NOT_READY,
            f"{ready} of {len(listed)} Targets are ready; {wrong['name']}: {wrong['reason']}",
        )
    else:
        outcome = SetOutcome(TARGETS_READY, f"{ready} of {len(listed)} Targets are ready")

    if decision.held is not None and decision.held.reason == NOT_SERVED:
        outcome = decision.held
    elif not listed and decision.create:
        outcome = SetOutcome(TARGETS_NOT_READY, "Targets are being made")

    return _status(obj, outcome, decision.held, (found, ready, listed), now)


def failure(obj: Object, outcome: SetOutcome, now: datetime) -> Object:
    """Return the status of a set that can make nothing."""
    return _status(obj, outcome, None, None, now)


def _status(
    obj: Object,
    outcome: SetOutcome,
    held: SetOutcome | None,
    counts: tuple[int, int, Objects] | None,
    now: datetime,
) -> Object:
    made = [status_conditions.build(obj, READY, outcome.reason == TARGETS_READY, *outcome, now)]
    if counts is not None:
        message = "no removal is held"
        if held is not None:
            generation = objects.metadata(obj).get("generation", 0)
            cure = _RETURN if held.reason == NOT_SERVED else _CONFIRM.format(generation=generation)
            message = f"{held.message}; {cure}"

        reason = held.reason if held is not None else "NothingHeld"
        made.append(status_conditions.build(obj, HELD, held is not None, reason, message, now))

    wanted: Object = {"conditions": status_conditions.merged(obj, *made)}
    if counts is not None:
        found, ready, listed = counts
        wanted |= {"found": found, "ready": ready, "targets": listed[:MOST_LISTED]}

    return wanted
