"""What is sent of a changed proxy, and what is done of it to a delegate."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.permitted import MANIFESTS
from vnode.api import changeable, keys, objects
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.pods import annotation_merge, changes, chaperons, delegate, delegate_report
from vnode.pods.source import candidate_forms, proxy_state

PARENT = Identity("c1", "uid-of-c1")


def living(**metadata):
    """Return a bound proxy as the API server has it."""
    manifest: Object = {
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"team": "a"}},
        "spec": {
            "containers": [
                {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}
            ],
            "nodeSelector": {"disk": "ssd"},
        },
    }
    return {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "u1",
            "labels": {"app": "web", keys.HAS_FINALIZER: "true"},
            "annotations": {"team": "a", keys.SOURCE_POD_MANIFEST: json.dumps(manifest)},
            **metadata,
        },
        "spec": {
            "containers": copy.deepcopy(manifest["spec"]["containers"]),
            "nodeSelector": {keys.PROVIDER_LABEL: "admiralty"},
            "nodeName": "admiralty-c2",
            "schedulerName": keys.PROXY_SCHEDULER,
        },
    }


def built(live):
    made = chaperons.build(
        copy.deepcopy(live), PARENT, "default/c2", manifests=MANIFESTS, allowed=True, finalizer=True
    )
    made["metadata"]["uid"] = "c-uid"
    return made


def kept(candidate):
    """Return a chaperon as the informer of the link keeps it."""
    return {**candidate, "spec": changeable.trim(candidate["spec"])}


def made(candidate):
    """Return the delegate of a chaperon, as the API server answers its creation."""
    pod = delegate.build(candidate)
    pod["metadata"]["uid"] = "p-uid"
    return pod


def patched(obj, patch):
    """Return an object after a merge patch, by RFC 7386 at its simplest."""
    result = dict(obj)
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        elif isinstance(value, dict):
            result[field] = patched(result.get(field) or {}, value)
        else:
            result[field] = value

    return result


def sent(live, candidate):
    """Return the chaperon after a change of its proxy was sent."""
    patch = changes.chaperon_patch(live, built(live), kept(candidate))
    return patched(candidate, patch)


def test_an_unchanged_pod_is_no_news():
    live = living()
    candidate = built(live)
    assert not changes.is_news(proxy_state.trim(live), kept(candidate), PARENT)
    assert changes.chaperon_patch(live, built(live), kept(candidate)) == {}
    assert changes.pending(candidate, made(candidate)) == {}


def test_a_chaperon_of_before_gets_no_label_that_its_delegate_does_not_have():
    old, now = built(living()), built(living(labels={"app": "web", "new": "x"}))
    del old["metadata"]["labels"][keys.PARENT_CLUSTER_UID]
    assert not changes.is_news(living(), kept(old), PARENT)
    assert changes.chaperon_patch(living(), built(living()), kept(old)) == {}
    assert candidate_forms.digest(old) == candidate_forms.digest(built(living()))
    patch = changes.chaperon_patch(living(labels={"app": "web", "new": "x"}), now, kept(old))
    assert patch["metadata"]["labels"] == {keys.PREFIX + "new": "x"}


def test_a_pod_without_annotations_of_others_carries_no_record():
    live = living()
    del live["metadata"]["annotations"]["team"]
    assert keys.SENT not in objects.annotations(built(live))


def test_labels_that_the_binding_copied_from_the_virtual_node_are_no_news():
    candidate = built(living())
    labels = {
        "app": "web",
        "topology.kubernetes.io/zone": "z",
        "topology.kubernetes.io/region": "r",
    }
    assert not changes.is_news(proxy_state.trim(living(labels=labels)), kept(candidate), PARENT)


def change_label(live):
    live["metadata"]["labels"] = {"tier": "front"}


def change_annotation(live):
    live["metadata"]["annotations"]["team"] = "b"


def change_image(live):
    live["spec"]["containers"][0]["image"] = "nginx:2"


def change_resources(live):
    live["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}


def change_deadline(live):
    live["spec"]["activeDeadlineSeconds"] = 60


def debug(live):
    live["spec"]["ephemeralContainers"] = [{"name": "shell", "image": "busybox", "tty": True}]


EVERY = [
    change_label,
    change_annotation,
    change_image,
    change_resources,
    change_deadline,
    debug,
]


@pytest.mark.parametrize("change", EVERY)
def test_every_change_is_news_until_it_was_sent(change):
    live = living()
    candidate = built(live)
    change(live)
    assert changes.is_news(proxy_state.trim(live), kept(candidate), PARENT)
    after = sent(live, candidate)
    assert not changes.is_news(proxy_state.trim(live), kept(after), PARENT)
    assert changes.pending(after, made(candidate))


@given(st.lists(st.sampled_from(EVERY), max_size=4), st.sampled_from(EVERY))
def test_a_chaperon_that_followed_all_changes_is_as_one_made_now(before, last):
    live = living()
    candidate = built(live)
    for change in (*before, last):
        change(live)
        candidate = sent(live, candidate)

    now = built(live)
    assert candidate["spec"] == now["spec"]
    assert objects.labels(candidate) == objects.labels(now)
    assert annotation_merge.foreign(candidate) == annotation_merge.foreign(now)


def test_containers_that_others_put_into_the_proxy_are_not_sent():
    live = living()
    candidate = built(live)
    live["spec"]["containers"].append({"name": "injected", "image": "x"})
    assert not changes.is_news(proxy_state.trim(live), kept(candidate), PARENT)


def test_only_what_changed_is_done_to_the_delegate():
    live = living()
    candidate = built(live)
    change_label(live)
    change_image(live)
    delta = changes.pending(sent(live, candidate), made(candidate))
    body = changes.pod_patch(delta, made(candidate), {})
    assert body["spec"] == {"containers": [{"name": "main", "image": "nginx:2"}]}
    assert body["metadata"]["labels"] == {
        keys.PREFIX + "app": None,
        keys.PREFIX + "tier": "front",
    }
    assert body["metadata"]["uid"] == "p-uid"
    assert changes.resize_patch(delta, made(candidate)) == {}


def test_a_resize_names_only_the_resources_that_changed():
    live = living()
    live["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1", "memory": "1Gi"}
    candidate = built(live)
    live["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }
    delta = changes.pending(sent(live, candidate), made(candidate))
    assert changes.resize_patch(delta, made(candidate))["spec"] == {
        "containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]
    }


def test_a_delegate_that_is_made_of_a_changed_chaperon_lacks_only_ephemeral_containers():
    live = living()
    candidate = built(live)
    for change in EVERY:
        change(live)
        candidate = sent(live, candidate)

    pod = made(candidate)
    assert "ephemeralContainers" not in pod["spec"]
    assert pod["spec"]["containers"][0]["image"] == "nginx:2"
    delta = changes.pending(candidate, pod)
    assert delta == {"ephemeralContainers": {"shell": True}}
    body = changes.ephemeral_patch(delta, candidate, pod)
    assert body["spec"]["ephemeralContainers"] == live["spec"]["ephemeralContainers"]


def test_a_report_leaves_annotations_alone_that_the_delegate_does_not_have_yet():
    live = living()
    candidate = built(live)
    pod = made(candidate)
    change_annotation(live)
    live["metadata"]["annotations"]["new"] = "1"
    after = sent(live, candidate)
    pod["metadata"]["annotations"]["cni"] = "x"
    metadata = delegate_report.build(after, pod).metadata["metadata"]
    assert metadata["annotations"] == {"cni": "x", keys.REPORTED: '{"cni":null}'}


@pytest.mark.parametrize(
    "spoilt",
    ["[]", '{"annotations": [1]}', '{"annotations": "x"}', "{", '{"a":' * 10_000],
    ids=["list", "numbers", "text", "cut", "deep"],
)
def test_a_record_that_a_target_has_spoilt_is_written_anew(spoilt):
    live = living()
    candidate = built(live)
    candidate["metadata"]["annotations"][keys.SENT] = spoilt
    candidate["metadata"]["annotations"]["team"] = "theirs"
    patch = changes.chaperon_patch(live, built(live), kept(candidate))
    assert annotation_merge.read(patch, keys.SENT)["annotations"]["team"] == "a"
