from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from vnode.api import keys, status_conditions
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.start_record import StartRecord
from vnode.targets import conditions, target_conditions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
OTHER = {"type": "Other", "status": "True"}


def make_target(*known, generation=3):
    return {
        "metadata": {"name": "c2", "generation": generation},
        "status": {"conditions": list(known)},
    }


def test_a_new_condition_says_all_that_kubernetes_wants():
    assert conditions.ready(make_target(), False, "Invalid", "fix it", NOW) == {
        "type": "Ready",
        "status": "False",
        "reason": "Invalid",
        "message": "fix it",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 3,
    }


def test_the_transition_time_moves_with_the_status_only():
    bad = conditions.ready(make_target(), False, "Invalid", "fix it", NOW)
    worse = conditions.ready(make_target(bad), False, "Forbidden", "ask", LATER)
    good = conditions.ready(make_target(worse), True, "Connected", "", LATER)
    assert worse["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert good["lastTransitionTime"] == "2026-01-01T01:00:00Z"


def test_the_conditions_of_others_stay():
    ready = conditions.ready(make_target(), True, "Connected", "", NOW)
    name = status_conditions.build(
        make_target(), conditions.CLUSTER_NAME_UNIQUE, False, "x", "", NOW
    )
    assert status_conditions.merged(make_target(OTHER), ready, name) == [OTHER, ready, name]
    old = conditions.ready(make_target(), False, "Invalid", "", NOW)
    assert status_conditions.merged(make_target(old, OTHER), ready) == [OTHER, ready]


def test_what_changes_nothing_is_not_written():
    ready = conditions.ready(make_target(), True, "Connected", "", NOW)
    again = conditions.ready(make_target(ready), True, "Connected", "", LATER)
    assert status_conditions.merged(make_target(ready, OTHER), again) is None
    newer = conditions.ready(make_target(ready, generation=4), True, "Connected", "", LATER)
    assert status_conditions.merged(make_target(ready, generation=4), newer) == [newer]


def test_another_status_or_reason_is_news_another_wording_is_not():
    ready = conditions.ready(make_target(), False, "Unreachable", "refused", NOW)
    target = make_target(ready)
    assert status_conditions.turned(make_target(), ready)
    assert not status_conditions.turned(target, {**ready, "message": "timed out"})
    assert status_conditions.turned(target, {**ready, "reason": "Forbidden"})
    assert status_conditions.turned(target, {**ready, "status": "True"})


@pytest.mark.parametrize(
    ("version", "runs", "status", "reason", "message"),
    [
        ("0.1.0", True, "True", "Vnode", "the target runs vnode 0.1.0"),
        ("0.1.0", False, "False", "Silent", "vnode 0.1.0 has sent no heartbeat"),
        ("", False, "False", "NotVnode", "the target's agent is not vnode's"),
    ],
)
def test_a_condition_says_what_a_target_runs(version, runs, status, reason, message):
    annotations = {keys.AGENT_VERSION: version} if version else {}
    summary = {"metadata": {"name": "singleton", "annotations": annotations}}
    link: Any = SimpleNamespace(summary=summary, runs_vnode=runs)
    found = target_conditions.agent(make_target(), link, NOW) or {}
    assert (found["type"], found["status"], found["reason"]) == ("Agent", status, reason)
    assert found["message"].startswith(message)


def test_nothing_is_said_about_an_agent_before_the_target_has_a_summary():
    link: Any = SimpleNamespace(summary=None, runs_vnode=False)
    assert target_conditions.agent(make_target(), link, NOW) is None


def test_what_an_inventory_says_of_the_control_plane_is_told_and_then_left_alone():
    later = NOW + timedelta(minutes=5)
    condition = {"status": "False", "reason": "HeartbeatLost", "message": "for 5 min"}
    target = make_target()
    assert conditions.control_plane(target, None, NOW) is None
    assert conditions.control_plane(target, {"status": "Unknown"}, NOW) is None
    for answer, status, reason in (
        (condition, "False", "HeartbeatLost"),
        ({"status": "True", "reason": "", "message": None}, "True", "Unknown"),
        (None, "Unknown", "Unknown"),
        (condition, "False", "HeartbeatLost"),
    ):
        found = conditions.control_plane(target, answer, NOW)
        assert found is not None
        assert (found["status"], found["reason"]) == (status, reason)
        target = make_target(found)
        assert conditions.control_plane(target, answer, later) == found


def test_node_pools_that_are_wrong_are_said_and_so_is_that_they_are_right_again():
    target = make_target()
    assert target_conditions.pools(target, NOW) is None
    target["metadata"]["annotations"] = {keys.NODE_POOLS: '[{"max": 3}]'}
    wrong = target_conditions.pools(target, NOW)
    assert wrong
    assert (wrong["type"], wrong["status"], wrong["reason"]) == (
        "NodePoolsValid",
        "False",
        "Invalid",
    )
    assert "annotation vnode.dev/node-pools: Object missing required field" in wrong["message"]
    target["status"]["conditions"] = [wrong]
    target["metadata"]["annotations"] = {keys.NODE_POOLS: "- {allocatable: {cpu: 4}, max: 2}"}
    right = target_conditions.pools(target, NOW)
    assert right
    assert right["status"] == "True"
    target["metadata"]["annotations"] = {}
    none = target_conditions.pools(target, NOW)
    assert none
    assert none["message"] == "node pools: 0"


def fake_link(*, healthy: bool = True, silent: bool = False, scheduler_silent: bool = False) -> Any:
    """Return what conditions read of a link."""
    return SimpleNamespace(
        health=LinkHealth(healthy, "Connected" if healthy else "Unreachable", "m", NOW),
        failure="",
        summary={"metadata": {"annotations": {keys.AGENT_VERSION: "1"}}},
        runs_vnode=not silent,
        scheduler_silent_since=NOW if scheduler_silent else None,
        starts=StartRecord(),
    )


def silent_pods():
    link = fake_link()
    link.starts.on_silence(0.0, 30.0)
    return link


def placed_meanwhile():
    link = fake_link(scheduler_silent=True)
    link.starts.on_decision(30.0)
    return link


@pytest.mark.parametrize(
    ("link", "ready", "reason", "connected"),
    [
        (fake_link(), "True", "Connected", "True"),
        (fake_link(healthy=False), "False", "Unreachable", "False"),
        (fake_link(healthy=False, silent=True), "False", "Unreachable", "False"),
        (fake_link(silent=True), "False", "AgentSilent", "True"),
        (silent_pods(), "False", "NoAnswer", "True"),
        (fake_link(scheduler_silent=True), "False", "SchedulerSilent", "True"),
        (placed_meanwhile(), "True", "Connected", "True"),
    ],
)
def test_a_target_is_ready_if_a_pod_would_start_there_and_lost_if_it_is_not_connected(
    link, ready, reason, connected
):
    found = target_conditions.link_ready(make_target(), link, NOW, 31.0)
    assert (found["status"], found["reason"]) == (ready, reason)
    assert target_conditions.link_condition(make_target(), link, NOW)["status"] == connected


def test_the_time_of_a_loss_is_taken_over_from_earlier_versions_and_is_no_other():
    lost = conditions.ready(make_target(), False, "Unreachable", "m", NOW)
    link = fake_link(healthy=False)
    taken = target_conditions.link_condition(make_target(lost), link, LATER)
    assert taken["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    # Nobody answered pods for an hour, and then the target was lost: it is lost since then.
    unready = target_conditions.link_ready(make_target(), silent_pods(), NOW, 31.0)
    known = target_conditions.link_condition(make_target(), silent_pods(), NOW)
    lost = target_conditions.link_condition(make_target(unready, known), link, LATER)
    assert lost["lastTransitionTime"] == "2026-01-01T01:00:00Z"
