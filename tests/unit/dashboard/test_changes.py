"""What changed in the last hour: by conditions, by Events, and by what was seen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.unit.dashboard.test_markup import read
from tests.unit.dashboard.test_pages import NODE, NOW, PATHS, made, pod, target
from vnode.api import disruptions, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.dashboard import changes, overview
from vnode.dashboard.changes import ChangeRecord, RecentChange


def turned(minutes: int, *, ready: bool = False, message: str = "no route") -> Object:
    """Return a target that turned that many minutes ago."""
    whole = target(ready=ready, message=message)
    at = objects.timestamp(NOW - timedelta(minutes=minutes))
    whole["status"]["conditions"][0]["lastTransitionTime"] = at
    return whole


def event(reason: str, minutes: int, kind: str = "Pod", name: str = "web", **more: Any) -> Object:
    return {
        "involvedObject": {"kind": kind, "namespace": "default", "name": name},
        "reason": reason,
        "message": "because",
        "type": "Warning",
        "lastTimestamp": objects.timestamp(NOW - timedelta(minutes=minutes)),
        **more,
    }


def disrupted(reason: str) -> Object:
    return pod("web", NODE, conditions=[disruptions.condition(reason, "c2 is lost", NOW)])


def test_conditions_tell_how_targets_turned_for_an_hour() -> None:
    [change] = changes.recent((), [], [turned(59)], NOW)
    assert (change.target, change.text) == ("default/c2", "became not ready: no route")
    assert changes.recent((), [], [turned(61)], NOW) == ()
    assert changes.recent((), [], [turned(1, ready=True)], NOW)[0].is_good


def test_events_tell_failovers_and_moves_newest_first_and_nothing_else() -> None:
    events = [
        event("FailedOver", 30),
        event("Moved", 5, name="db", type="Normal"),
        event("FeedbackRefused", 1),
        event("Unreachable", 40, kind="Target", name="c2"),
        event("Connected", 50, kind="ClusterTarget", name="gpu", type="Normal"),
        event("Lasting", 1, kind="Target", type="Normal"),
        event("Moved", 1, kind="PlacementPolicy"),
        {"reason": "Moved"},
    ]
    found = changes.recent((), events, [], NOW)
    assert [each.pod or each.target for each in found] == [
        "default/db",
        "default/web",
        "default/c2",
        "default/gpu",
    ]


def test_what_is_told_twice_is_one_change_and_what_comes_again_is_two() -> None:
    seen = RecentChange(NOW - timedelta(minutes=30), "FailedOver", "seen", False, pod="default/web")
    assert len(changes.recent([seen], [event("FailedOver", 30)], [], NOW)) == 1
    assert len(changes.recent([seen], [event("FailedOver", 10)], [], NOW)) == 2


def test_the_record_keeps_what_it_sees_and_no_more_than_it_may() -> None:
    record = ChangeRecord(SystemClock())
    record.on_target(None, turned(1))
    record.on_target(turned(1), turned(1))
    assert record.changes == ()
    record.on_target(turned(2, ready=True), turned(1))
    record.on_target(turned(1), None)
    record.on_pod(pod("web", NODE), disrupted("DeletionByTaintManager"))
    record.on_pod(disrupted("DeletionByTaintManager"), disrupted("DeletionByTaintManager"))
    record.on_pod(pod("web", NODE), None)
    assert [each.reason for each in record.changes] == ["Some", "Deleted", "FailedOver"]
    assert record.changes[-1].text == "failed over to another target: c2 is lost"
    for _ in range(changes.MOST):
        record.on_pod(pod("web", NODE), disrupted("EvictionByEvictionAPI"))

    assert {each.reason for each in record.changes} == {"Evicted"}
    assert len(record.changes) == changes.MOST


def test_the_first_page_has_them_with_links() -> None:
    html = overview.build(made(events=[event("FailedOver", 30)], targets=[turned(5)]), PATHS)
    text = read(html.decode()).text
    assert text.index("no route") < text.index("because")
    assert "/base/pods/default/web" in html.decode()
    assert "No target has turned" in read(overview.build(made(), PATHS).decode()).text
