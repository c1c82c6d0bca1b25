from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
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
        "annotations": {"note": "y", copies.LAST_APPLIED: "{}", keys.ELECT: ""},
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


def test_tokens_of_service_accounts_stay_at_home():
    assert copies.is_stray({"type": "kubernetes.io/service-account-token"})
    assert not copies.is_stray({"type": "Opaque"})
