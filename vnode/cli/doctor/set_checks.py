"""Checks TargetSets and ClusterTargetSets: whether they are kept, what they hold, and which
profiles have no Target. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import enumeration, keys, objects
from vnode.api.objects import Object, Objects
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level
from vnode.targetsets import deciding, reporting, spec

ROLE: Final = "vnode-target-sets"
"""The ClusterRole that lets the agent keep sets, where an operator binds it."""
_NAMED: Final = 3  # profiles in one line
_TURN_ON: Final = (
    f"have the agent keep sets: targetSets.enabled of the chart, or bind ClusterRole {ROLE}; and "
    "set inventory.namespaces in the agent's configuration (docs/inventory.md)"
)
_CURES: Final = {
    deciding.NAME_TAKEN: "leave it, or rename the profile, or delete the other Target",
    deciding.NAME_INVALID: "have the cluster manager give the profile a shorter name",
    deciding.NOT_CREATED: f"see that ClusterRole {ROLE} is bound to the agent, and its log",
}
"""By the reasons why a profile has no Target."""
_RESTORE: Final = "install the inventory's CRD again, and restore the ClusterProfiles"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings about the sets of a cluster; nothing where there are none."""
    for obj in facts.target_sets:
        yield from _set(facts, obj)


def _set(facts: ClusterFacts, obj: Object) -> Iterator[Finding]:
    name = f"{spec.kind_of(obj).kind} {objects.key(obj)}"
    ready = objects.condition(obj, reporting.READY)
    if ready is None or _is_behind(ready, obj):
        level = Level.WARN if facts.is_young(obj) else Level.FAIL
        what = "no agent has looked at it yet"
        if ready is not None:
            level, what = Level.WARN, "no agent has looked at it since it was changed"

        cure = "see that the agent runs, and its log" if facts.is_bound(ROLE) else _TURN_ON
        yield Finding(facts.name, name, level, what, cure)
        return

    if reporting.is_held(obj):
        yield _held(facts, name, obj)

    lost = list(_without_target(obj))
    for reason in dict.fromkeys(entry["reason"] for entry in lost):
        entries = [entry for entry in lost if entry["reason"] == reason]
        yield _unusable(facts, name, ready, entries)

    if not lost and not _is_told(ready, obj):
        yield _general(facts, name, ready)


def _held(facts: ClusterFacts, name: str, obj: Object) -> Finding:
    condition = objects.condition(obj, reporting.HELD) or {}
    message = str(condition.get("message", "")).partition(";")[0]
    text = f"removals are held: {condition.get('reason')}: {message}"
    if condition.get("reason") == deciding.NOT_SERVED:
        return Finding(facts.name, name, Level.FAIL, text, _RESTORE)

    cure = f"restore the ClusterProfiles; if the clusters are really gone: {_confirmation(obj)}"
    return Finding(facts.name, name, Level.FAIL, text, cure)


def _confirmation(obj: Object) -> str:
    """Return the command by which somebody says that the profiles are really gone."""
    kind, namespace = spec.kind_of(obj).kind.lower(), objects.namespace(obj)
    place = f" --namespace {namespace}" if namespace else ""
    generation = objects.metadata(obj).get("generation", 0)
    return (
        f"kubectl annotate {kind} {objects.name(obj)}{place} --overwrite "
        f"{keys.CONFIRM_REMOVAL}={generation}"
    )


def _without_target(obj: Object) -> Iterator[Object]:
    """Yield the entries of profiles that have no Target."""
    for entry in objects.status(obj).get("targets") or ():
        if entry.get("reason") in _CURES:
            yield entry


def _unusable(facts: ClusterFacts, name: str, ready: Object, entries: Objects) -> Finding:
    reason = entries[0]["reason"]
    named = enumeration.some([entry["profile"] for entry in entries], _NAMED)
    level = Level.WARN if reason == deciding.NAME_TAKEN else Level.FAIL
    why = ": other Targets have these names" if reason == deciding.NAME_TAKEN else ""
    text = f"{reason}: no Target for ClusterProfile {named}{why}"
    if len(entries) == 1 and ready.get("reason") == reason:
        text = f"{reason}: {ready.get('message')}"

    return Finding(facts.name, name, level, text, _CURES[reason])


def _is_told(ready: Object, obj: Object) -> bool:
    """Tell whether the condition Ready says what the one about held removals has said."""
    held = objects.condition(obj, reporting.HELD) or {}
    return reporting.is_held(obj) and ready.get("reason") in (
        reporting.TARGETS_READY,
        held.get("reason"),
    )


def _general(facts: ClusterFacts, name: str, ready: Object) -> Finding:
    reason, message = str(ready.get("reason")), str(ready.get("message", ""))
    if ready.get("status") == "True":
        return Finding(facts.name, name, Level.OK, message)

    text = f"{reason}: {message}"
    if reason == reporting.NO_PROFILES:
        cure = "see spec.profiles, and inventory.namespaces in the agent's configuration"
        return Finding(facts.name, name, Level.WARN, text, cure)

    if reason == reporting.TARGETS_NOT_READY:
        return Finding(facts.name, name, Level.WARN, text, "see what is said of that Target")

    return Finding(facts.name, name, Level.FAIL, text, IN_THE_TEXT)


def _is_behind(ready: Object, obj: Object) -> bool:
    generation = objects.metadata(obj).get("generation", 0)
    return bool(ready.get("observedGeneration", generation) != generation)
