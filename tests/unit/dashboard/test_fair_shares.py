"""What is wrong in one namespace, however much, hides nothing of another."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.dashboard.test_changes import disrupted
from tests.unit.dashboard.test_markup import read
from tests.unit.dashboard.test_pages import NODE, NOW, PATHS, made, pod, refused, target
from tests.unit.dashboard.test_troubles import LONG_AGO
from vnode.api import objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.dashboard import changes, overview
from vnode.dashboard.changes import ChangeRecord, RecentChange


def waits(namespace: str, name: str, why: str) -> Object:
    metadata = {"namespace": namespace, "uid": f"{namespace}/{name}", "creationTimestamp": LONG_AGO}
    return pod(name, conditions=refused(why), metadata=metadata)


def lost(namespace: str, name: str) -> Object:
    found = target(name, ready=False, message=f"{name} is lost")
    found["metadata"]["namespace"] = namespace
    return found


def test_pods_that_wait_for_different_reasons_hide_no_other_namespace() -> None:
    pods = [waits("aaa", f"p{n}", f"0/1 targets: c2: no {n}") for n in range(1000)]
    pods.append(waits("zzz", "web", "0/1 targets: c2: no gpu"))
    view = made(pods, targets=[{**target(), "metadata": {"name": "c2"}}])
    assert len(view.troubles) == 200
    assert [each.pod for each in view.troubles[:2]] == ["aaa/p0", "zzz/web"]


def test_targets_that_are_lost_hide_no_other_namespace_and_cluster_targets_come_first() -> None:
    targets = [lost("aaa", f"t{n}") for n in range(100)]
    targets += [lost("zzz", "own"), lost("", "zurich")]
    view = made(targets=targets)
    assert [each.target for each in view.troubles[:3]] == ["zurich", "aaa/t0", "zzz/own"]
    text = read(overview.build(view, PATHS).decode()).text
    assert "zurich is lost" in text.partition("and 90 more")[0]


def test_changes_of_one_namespace_push_out_no_others() -> None:
    record = ChangeRecord(SystemClock())
    record.on_target(lost("", "berlin"), None)
    before, after = pod("web", NODE), disrupted("EvictionByEvictionAPI")
    for _ in range(1000):
        record.on_pod(before, after)

    assert len(record.changes) == changes.MOST
    assert record.changes[0].target == "berlin"

    at = [NOW - timedelta(seconds=n) for n in range(100)]
    told = [RecentChange(moment, "Moved", "", False, pod=f"aaa/p{moment}") for moment in at]
    told.append(RecentChange(at[-1], "Moved", "", False, pod="zzz/web"))
    shown = changes.newest(told, 12)
    assert len(shown) == 12
    assert shown[-1].pod == "zzz/web"
    assert objects.timestamp(shown[0].at) == objects.timestamp(NOW)
