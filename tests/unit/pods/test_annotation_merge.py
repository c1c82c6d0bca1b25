"""Annotations that both sides may write: who changed one, and that they agree in the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, objects
from vnode.pods import annotation_merge
from vnode.pods.source import feedback

NOTES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2", "3"]))


def pod(annotations=None, fed=None):
    annotations = dict(annotations or {})
    if fed is not None:
        annotations[keys.FED_BACK] = annotation_merge.text(fed)

    return {"metadata": {"annotations": annotations}}


def test_what_the_source_changed_goes_down():
    settled = annotation_merge.settle(pod({"a": "2"}), pod({"a": "1"}), {"a": "1"})
    assert (settled.down, settled.sent, settled.up) == ({"a": "2"}, {"a": "2"}, {})


def test_what_the_target_changed_comes_up_with_a_record_of_it():
    settled = annotation_merge.settle(pod({"a": "1"}), pod({"a": "2"}), {"a": "1"})
    assert settled.down == {}
    assert settled.up == {"a": "2", keys.FED_BACK: '{"a":"2"}'}


def test_if_both_have_changed_it_the_source_has_the_last_word():
    settled = annotation_merge.settle(pod({"a": "2"}), pod({"a": "3"}), {"a": "1"})
    assert (settled.down, settled.up) == ({"a": "2"}, {})


def test_what_the_target_changed_again_comes_up_again():
    settled = annotation_merge.settle(pod({"a": "2"}, fed={"a": "2"}), pod({"a": "3"}), {"a": "1"})
    assert (settled.down, settled.up["a"]) == ({}, "3")


def test_what_the_target_took_away_is_taken_away_here():
    settled = annotation_merge.settle(pod({"a": "1"}), pod(), {"a": "1"})
    assert (settled.down, settled.up) == ({}, {"a": None, keys.FED_BACK: '{"a":null}'})


def test_what_the_source_took_away_is_taken_away_there():
    settled = annotation_merge.settle(pod(), pod({"a": "1"}), {"a": "1"})
    assert (settled.down, settled.sent) == ({"a": None}, {})


def test_of_thousands_only_those_that_differ_are_merged(monkeypatch):
    asked, travels = [], keys.travels

    def noted(key):
        asked.append(key)
        return travels(key)

    monkeypatch.setattr(keys, "travels", noted)
    same = {f"k{number}": "1" for number in range(4_000)}
    settled = annotation_merge.settle(
        pod({**same, "a": "2"}), pod({**same, "a": "1"}), {**same, "a": "1", "gone": "1"}
    )
    assert settled.down == {"a": "2"}
    assert sorted(asked) == ["a", "gone"]


def test_annotations_of_ours_do_not_travel():
    settled = annotation_merge.settle(
        pod({keys.ELECT: "", keys.PREFIX + "x": "1"}), pod({keys.IS_ALLOWED: "true"}), {}
    )
    assert (settled.down, settled.up) == ({}, {})


def test_a_record_that_was_spoilt_is_an_empty_one():
    for spoilt in ("", "{", "[1]", "null", '{"a":' * 10_000):
        assert (
            annotation_merge.read({"metadata": {"annotations": {keys.SENT: spoilt}}}, keys.SENT)
            == {}
        )


def written(obj, patch):
    """Return what the API server makes of an object and a merge patch of its annotations."""
    annotations = objects.annotations(obj) | patch
    return pod({key: value for key, value in annotations.items() if value is not None})


@given(NOTES, NOTES, NOTES, NOTES, st.booleans())
def test_both_sides_agree_after_any_changes_and_then_nothing_is_written(
    first, here, there, later, by_target
):
    """Start in agreement, change both sides, settle; change one more time, settle again."""
    proxy, chaperon, sent = pod(here), pod(there), first
    for changed in (None, later):
        if changed is not None and by_target:
            chaperon = pod(changed)
        elif changed is not None:
            fed = annotation_merge.read(proxy, keys.FED_BACK)
            proxy = pod(changed, fed or None)

        for _round in range(2):  # the second only tidies the records
            settled = annotation_merge.settle(proxy, chaperon, sent)
            proxy, chaperon = written(proxy, settled.up), written(chaperon, settled.down)
            sent = settled.sent

        quiet = annotation_merge.settle(proxy, chaperon, sent)
        assert (quiet.down, quiet.up) == ({}, {})
        assert annotation_merge.foreign(proxy) == annotation_merge.foreign(chaperon)

    assert annotation_merge.foreign(proxy) == later


def test_what_a_queue_has_written_on_either_side_is_left_there():
    queued = {"kueue.x-k8s.io/workload": "w", "x.kueue.x-k8s.io/y": "z"}
    for here, there, sent in ((queued, {}, {}), ({}, queued, {}), (queued, {}, queued)):
        settled = annotation_merge.settle(pod(here), pod(there), sent)
        assert (settled.down, settled.up) == ({}, {})


def test_which_devices_a_target_has_chosen_stays_there_and_what_its_user_wants_goes_down():
    chosen = {"hami.io/vgpu-node": "n1"}
    assert annotation_merge.settle(pod(), pod(chosen), {}).up == {}
    wanted = {"hami.io/gpu-scheduler-policy": "spread"}
    assert annotation_merge.settle(pod(wanted), pod(), {}).down == wanted
    sent = annotation_merge.settle(pod(wanted), pod(wanted | chosen), wanted)
    assert (sent.down, sent.up) == ({}, {})


@pytest.mark.parametrize(
    "order",
    [
        "external-dns.alpha.kubernetes.io/hostname",
        "external-dns.alpha.kubernetes.io/target",
        "consul.hashicorp.com/connect-service",
        "k8s.ovn.org/pod-networks",
        "argocd.argoproj.io/tracking-id",
        "kubernetes.io/config.mirror",
    ],
)
def test_a_target_gives_no_orders_to_controllers_of_the_source(order: str) -> None:
    theirs, mine = {order: "theirs"}, {order: "mine"}
    assert annotation_merge.settle(pod(), pod(theirs), {}).up == {}
    changed = annotation_merge.settle(pod(mine), pod(theirs), mine)
    assert (changed.down, changed.up) == ({}, {})
    removed = annotation_merge.settle(pod(mine), pod(), mine)
    assert (removed.down, removed.up) == ({}, {})
    assert annotation_merge.settle(pod(mine), pod(), {}).down == mine
    assert feedback.annotations_patch(pod(), pod(theirs), two_way=False) == {}


def test_what_a_target_reports_comes_back() -> None:
    told = {"k8s.v1.cni.cncf.io/network-status": "[]", "workflows.argoproj.io/outputs": "{}"}
    assert annotation_merge.settle(pod(), pod(told), {}).up.items() > told.items()
