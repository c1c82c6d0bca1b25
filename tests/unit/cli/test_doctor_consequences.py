"""What doctor leaves out since it follows from something else, and what it finds beside."""

from __future__ import annotations

from typing import Final

import pytest

from tests.unit.cli.doctor_facts import WRONG, cluster, connection, lease, ready, unready, webhook
from tests.unit.cli.explained_pods import proxy, refused
from vnode.api.objects import Object
from vnode.cli.doctor import all_checks, policy_checks
from vnode.cli.doctor.findings import Level

EXPIRED: Final = "Unauthorized: the target does not accept the credentials: run vnode connect again"
MISSING: Final = "targets[0]: there is no Target or ClusterTarget c9: create it, or take it out"


def unaccepted(reason: str, message: str) -> Object:
    """Return a policy of namespace a that is not in force."""
    condition = {"type": "Accepted", "status": "False", "reason": reason, "message": message}
    metadata = {"name": "eu", "namespace": "a"}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": [condition]}}


NEW: Final = {"metadata": {"name": "gpu", "namespace": "a"}}
POLICY: Final = unaccepted("UnknownCluster", MISSING)
OVERRIDE: Final = unaccepted("Invalid", "rules[0].image[0]: there is no such field")


def test_an_agent_that_does_not_run_is_the_only_failure_of_its_connections_too() -> None:
    facts = cluster(agent_lease=lease(300), webhook=webhook(""), sources=[NEW])
    stale = connection(target=unready("Unreachable", "timed out"), node=None)
    fresh = connection(target=NEW, node=None)
    told = all_checks.check(facts, [stale, fresh])
    assert [each.check for each in told if each.level is Level.FAIL] == ["agent"]
    behind = {each.check for each in told if each.text == "the agent does not run"}
    assert behind == {"webhook", "source a/gpu", "its condition", "virtual node"}
    assert not any(each.cure for each in told if each.check in behind)


def test_the_agent_of_a_target_is_no_consequence_of_that_of_the_source() -> None:
    facts = cluster(agent_lease=lease(300))
    told = all_checks.check(facts, [connection(rights=WRONG)])
    assert [each.check for each in told if each.level is Level.FAIL] == ["agent", "rights"]


@pytest.mark.parametrize(
    ("known", "failing"),
    [
        ({}, ["candidates"]),
        ({"failure": EXPIRED}, ["connection"]),
        ({"summary_missing": True}, ["its agent"]),
    ],
)
def test_pods_without_an_answer_are_told_where_nothing_says_why(
    known: Object, failing: list[str]
) -> None:
    target = ready()
    line = "0/1 targets: gpu: no answer for 30 s (check that the agent runs)"
    waiting = proxy(conditions=refused(line), metadata={"namespace": "a"})
    found = all_checks.check(
        cluster(targets=[target], unplaced=[waiting]), [connection(target=target, **known)]
    )
    assert [each.check for each in found if each.level is Level.FAIL] == failing


def test_policies_that_are_not_in_force_are_told_with_what_follows() -> None:
    facts = cluster(placement_policies=[POLICY], override_policies=[OVERRIDE])
    found = list(policy_checks.check(facts))
    assert [(each.level, each.text) for each in found] == [
        (
            Level.WARN,
            "placementpolicy/a/eu is not in force, and pods are placed as without it: " + MISSING,
        ),
        (Level.WARN, "overridepolicy/a/eu: Invalid: rules[0].image[0]: there is no such field"),
    ]
    assert not list(policy_checks.check(cluster()))
