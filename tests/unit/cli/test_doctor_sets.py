"""`vnode doctor` finds sets that nobody keeps or that hold removals, profiles without a Target."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.cli.doctor import (
    connection_checks,
    examining,
    profile_checks,
    set_checks,
    trying_profiles,
)
from vnode.cli.doctor.facts import ClusterFacts, ConnectionFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level
from vnode.targets.profiles.profile_references import ProfileReference
from vnode.targetsets import deciding, reporting
from vnode.targetsets.deciding import MadeTarget, SetDecision, SetOutcome

pytestmark = pytest.mark.looptime

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BINDING: Object = {"roleRef": {"name": set_checks.ROLE}, "subjects": [{"name": "vnode"}]}
READY: Object = {
    "metadata": {"name": "c2"},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Connected"}]},
}

PENDING: Object = {"metadata": {"name": "c2"}}


def unseen(age: float = 3600, **metadata: Any) -> Object:
    """Return a set without a status; `metadata` may make it one of a namespace."""
    created = objects.timestamp(NOW - timedelta(seconds=age))
    known = {"name": "gpu", "generation": 3, "creationTimestamp": created, **metadata}
    return {"metadata": known, "spec": {"profiles": {"selector": {}}}}


def kept(
    held: SetOutcome | None = None,
    refused: dict[str, SetOutcome] | None = None,
    target: Object | None = READY,
    **metadata: Any,
) -> Object:
    """Return a set with what the agent says of one Target, and of profiles that have none."""
    obj, decision = unseen(**metadata), SetDecision(held=held, refused=refused or {})
    selected = {key: {"metadata": {"name": key.partition("/")[2]}} for key in decision.refused}
    made = {"c2": MadeTarget("c2", "fleet/c2")} if target else {}
    listed = reporting.entries(decision, selected, made, {"c2": target} if target else {})
    return {**obj, "status": reporting.status(obj, decision, len(listed), listed, NOW)}


def check(*sets: Object, **more: Any) -> list[Finding]:
    return list(set_checks.check(ClusterFacts("here", NOW, target_sets=list(sets), **more)))


GONE = SetOutcome(deciding.MOST_GONE, "3 of 4 ClusterProfiles are gone: removals are held")
UNSERVED = SetOutcome(deciding.NOT_SERVED, "this cluster does not serve ClusterProfiles any more")
TAKEN = SetOutcome(deciding.NAME_TAKEN, "clustertarget/c3 was made by hand: delete it, or leave it")
LONG = SetOutcome(deciding.NAME_INVALID, "too long")


def test_without_sets_nothing_is_said_and_one_that_is_well_is_one_line() -> None:
    assert check() == []
    [found] = check(kept())
    assert (found.check, found.level) == ("ClusterTargetSet gpu", Level.OK)
    assert found.text == "1 of 1 Targets are ready"


def test_removals_that_are_held_are_a_failure_whose_cure_is_a_command() -> None:
    [found] = check(kept(GONE))
    assert found.level is Level.FAIL
    assert found.text == f"removals are held: {deciding.MOST_GONE}: {GONE.message}"
    annotate = "kubectl annotate clustertargetset gpu --overwrite vnode.dev/confirm-removal=3"
    assert annotate in found.cure
    [found] = check(kept(GONE, namespace="team"))
    assert found.check == "TargetSet team/gpu"
    assert "kubectl annotate targetset gpu --namespace team --overwrite" in found.cure


def test_a_kind_that_is_gone_cannot_be_confirmed() -> None:
    [found] = check(kept(UNSERVED))
    assert found.level is Level.FAIL
    assert "annotate" not in found.cure
    assert "CRD" in found.cure


def test_profiles_without_a_target_are_named_with_the_reason() -> None:
    [taken] = check(kept(refused={"fleet/c3": TAKEN}))
    assert taken.level is Level.WARN
    assert "profile fleet/c3 has no Target: clustertarget/c3 was made by hand" in taken.text
    names = [f"fleet/{letter * 99}" for letter in "abcde"]
    [long, taken] = check(kept(refused={**dict.fromkeys(names, LONG), "fleet/z": TAKEN}))
    assert (long.level, taken.level) == (Level.FAIL, Level.WARN)
    assert long.text.startswith(f"NameInvalid: no Target for ClusterProfile {names[0]}")
    assert long.text.endswith("and 2 more")
    assert taken.text.startswith(
        "NameTaken: no Target for ClusterProfile fleet/z: other Targets have"
    )


@pytest.mark.parametrize(
    ("obj", "more", "level", "text"),
    [
        (unseen(), {}, Level.FAIL, "no agent has looked at it yet"),
        (unseen(5), {}, Level.WARN, "no agent has looked at it yet"),
        ({**kept(), "metadata": {"name": "gpu", "generation": 4}}, {}, Level.WARN, "since it was"),
        (kept(target=None), {}, Level.WARN, "NoProfiles: no ClusterProfile matches"),
        (
            kept(target=PENDING),
            {},
            Level.WARN,
            "TargetsNotReady: 0 of 1 Targets are ready; c2: Pending",
        ),
    ],
)
def test_what_else_is_wrong_with_a_set_is_found(
    obj: Object, more: Object, level: Level, text: str
) -> None:
    [found] = check(obj, **more)
    assert found.level is level
    assert text in found.text
    assert found.cure


def test_a_set_that_nobody_keeps_is_told_how_it_would_be() -> None:
    assert "targetSets.enabled" in check(unseen())[0].cure
    assert "its log" in check(unseen(), issuers=[BINDING])[0].cure


@pytest.mark.parametrize("reason", ["InvalidSpec", "NamespaceNotAllowed"])
def test_a_set_that_cannot_be_kept_says_why_itself(reason: str) -> None:
    obj = unseen()
    obj["status"] = reporting.failure(obj, SetOutcome(reason, "change it"), NOW)
    [found] = check(obj)
    assert (found.level, found.text, found.cure) == (
        Level.FAIL,
        f"{reason}: change it",
        IN_THE_TEXT,
    )


async def test_sets_are_read(clock: Clock) -> None:
    server = APIServer("c1", clock)
    server.add(kinds.CLUSTER_TARGET_SETS, kept())
    server.add(kinds.TARGET_SETS, kept(GONE, namespace="team"))
    sets = await examining.target_sets(server.client())
    assert [found.level for found in check(*sets)] == [Level.FAIL, Level.OK]


async def test_the_profile_of_a_set_that_is_gone_is_as_it_is_remembered(clock: Clock) -> None:
    client = APIServer("c1", clock).client()
    reference, last = ProfileReference("fleet", "c2"), {"status": {"accessProviders": []}}
    facts, _endpoint = await trying_profiles.read(client, reference, None, last)
    profile, *_others = profile_checks.check("target c2", facts)
    assert profile.level is Level.WARN
    assert "until its set deletes the Target" in profile.text
    facts, _endpoint = await trying_profiles.read(client, reference, None)
    [profile] = profile_checks.check("target c2", facts)
    assert profile.level is Level.FAIL


async def test_profiles_that_are_not_served_are_told_from_one_that_is_not_there(
    clock: Clock,
) -> None:
    server = APIServer("c1", clock)
    reference = ProfileReference("fleet", "resource")
    facts, _endpoint = await trying_profiles.read(server.client(), reference, None)
    assert "there is no ClusterProfile fleet/resource" in facts.failure
    missing = NotFound(404, "NotFound", "the server could not find the requested resource")
    server.fail(missing, verb="get", kind=kinds.CLUSTER_PROFILES)
    facts, _endpoint = await trying_profiles.read(server.client(), reference, None)
    assert "install the inventory's CRD" in facts.failure


def test_a_node_without_the_taints_of_its_managed_cluster_is_a_warning() -> None:
    condition = {
        "type": keys.MEMBER_TAINTS_SYNCED,
        "status": "False",
        "reason": "R",
        "message": "bind",
    }
    node = {"metadata": {"name": "n"}, "status": {"conditions": [condition]}}
    facts = ConnectionFacts(READY, NOW, node=node)
    [found] = [each for each in connection_checks.check(facts) if each.check == "taints"]
    assert (found.level, found.text) == (Level.WARN, "R: bind")
