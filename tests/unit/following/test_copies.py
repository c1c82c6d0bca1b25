from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from vnode.api import cluster_things, keys
from vnode.api.identity import Identity
from vnode.following import copies

US = Identity("c1", "uid-1")
DATA = st.dictionaries(st.sampled_from("abc"), st.text(max_size=3), max_size=3)


def original(**fields):
    metadata = {
        "name": "m",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"app": "x", keys.HAS_FINALIZER: "true"},
        "annotations": {"note": "y", cluster_things.LAST_APPLIED: "{}", keys.ELECT: ""},
        "ownerReferences": [{"name": "o"}],
        "finalizers": ["f"],
    }
    return {"metadata": metadata, **fields}


def test_a_copy_says_where_it_comes_from():
    copy = copies.content(original(data={"a": "1"}, type="Opaque"), US)
    assert copy == {
        "metadata": {
            "name": "m",
            "namespace": "ns",
            "labels": {"app": "x", keys.PARENT_UID: "u", keys.PARENT_CLUSTER_NAME: "c1"},
            "annotations": {
                "note": "y",
                keys.FOLLOWED: '{"labels":["app"],"annotations":["note"]}',
                keys.PARENT_NAMESPACE: "ns",
                keys.PARENT_NAME: "m",
                keys.PARENT_CLUSTER_UID: "uid-1",
            },
        },
        "data": {"a": "1"},
        "type": "Opaque",
    }
    assert US.made(copy)
    assert not Identity("c1", "uid-2").made(copy)
    assert not Identity("c2", "uid-1").made(copy)


def test_what_the_target_has_filled_in_is_told_from_what_was_sent():
    metadata = copies.metadata(original(), US, spec={"tls": [], "rules": []})
    copy = {"metadata": metadata, "spec": {"tls": [], "ingressClassName": "theirs"}}
    assert copies.added(copy) == {"ingressClassName": "theirs"}
    assert copies.added({"metadata": {}, "spec": {"any": 1}}) == {"any": 1}


@given(DATA, DATA)
def test_the_digest_tells_contents_apart(one, two):
    digests = copies.digest(original(data=one)), copies.digest({"data": two})
    assert (digests[0] == digests[1]) == (one == two)


def test_empty_and_absent_are_alike_but_fields_are_not():
    assert copies.digest({"data": {}}) == copies.digest({})
    assert copies.digest({"data": {"a": "b"}}) != copies.digest({"binaryData": {"a": "b"}})
    assert copies.digest({"immutable": True}) != copies.digest({})


def test_what_is_kept_of_a_copy_does_not_hold_its_contents():
    assert "c2VjcmV0" not in str(copies.trim(original(data={"a": "c2VjcmV0"})))


def test_an_update_keeps_what_others_added_and_meets_no_namesake():
    present = {
        "metadata": {
            "uid": "copy",
            "resourceVersion": "9",
            "labels": {"added": "1", "app": "old"},
            "annotations": {"theirs": "2"},
        }
    }
    after = copies.successor(copies.content(original(), US), present)["metadata"]
    assert (after["uid"], after["resourceVersion"]) == ("copy", "9")
    assert after["labels"].items() >= {"added": "1", "app": "x"}.items()
    assert after["annotations"].items() >= {"theirs": "2", "note": "y"}.items()


NAMES = st.dictionaries(st.sampled_from("abc"), st.text(max_size=2), max_size=3)


def marked(labels, annotations, **more):
    fields = {"labels": labels, "annotations": annotations, **more}
    return {"metadata": {"name": "m", "namespace": "ns", "uid": "u", **fields}}


@given(NAMES, NAMES, NAMES, NAMES)
def test_an_update_brings_marks_and_takes_away_those_that_the_original_lost(
    labels, annotations, later_labels, later_notes
):
    others = {"labels": {"theirs": "1"}, "annotations": {"theirs": "2"}}
    present = copies.content(marked(labels, annotations), US)
    for field, value in others.items():
        present["metadata"][field] |= value

    wanted = copies.content(marked(later_labels, later_notes), US)
    unchanged = copies.marks(present) == copies.marks(wanted)
    assert unchanged == ((labels, annotations) == (later_labels, later_notes))
    after = copies.successor(wanted, present)
    assert copies.marks(after) == copies.marks(wanted)
    for field in ("labels", "annotations"):
        assert after["metadata"][field] == wanted["metadata"][field] | others[field]


@given(st.text(max_size=20))
@example('{"more":' + '{"a":' * 10_000)
def test_a_note_that_somebody_spoilt_does_no_harm(text):
    copy = copies.content(marked({"app": "x"}, {}), US)
    copy["metadata"]["annotations"][keys.FOLLOWED] = text
    after = copies.successor(copies.content(marked({}, {"n": "y"}), US), copy)
    assert copies.marks(after) == copies.marks(copies.content(marked({}, {"n": "y"}), US))


def test_annotations_about_the_original_itself_stay_behind():
    stays = {
        "cert-manager.io/cluster-issuer": "x",
        "meta.helm.sh/release-name": "x",
        "control-plane.alpha.kubernetes.io/leader": "{}",
    }
    travels = {"cert-manager.iot": "x", "nginx.ingress.kubernetes.io/rewrite-target": "/"}
    annotations = copies.metadata(marked({}, stays | travels), US)["annotations"]
    assert {key for key in annotations if keys.is_foreign(key)} == set(travels)


def test_tokens_of_service_accounts_stay_at_home():
    assert copies.is_stray({"type": "kubernetes.io/service-account-token"})
    assert copies.is_stray({"metadata": {"labels": {keys.TOKEN: ""}}, "type": "Opaque"})
    assert not copies.is_stray({"type": "Opaque"})


def test_a_note_that_no_api_server_takes_counts_as_none():
    note = json.dumps({"fields": [f"{number}" for number in range(100_000)]})
    copy = {"metadata": {"annotations": {keys.FOLLOWED: note}}, "spec": {"1": "theirs"}}
    assert copies.added(copy) == {"1": "theirs"}
