"""What undoes an override, for any two specs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import changeable, keys, objects
from vnode.api.objects import Object
from vnode.pods import annotation_merge, overriding

NAMES = ["main", "side"]
RESOURCES = st.dictionaries(
    st.sampled_from(["requests", "limits"]),
    st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2"])),
)
FIELDS = st.fixed_dictionaries(
    {}, optional={"image": st.sampled_from(["a", "b"]), "resources": RESOURCES}
)
WORDS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2"]))


@st.composite
def pods(draw: st.DrawFn) -> Object:
    """Return a pod, of which all have the same containers."""
    containers = [{"name": name, **draw(FIELDS)} for name in NAMES]
    spec: dict[str, Any] = {"containers": containers}
    spec["initContainers"] = [{"name": "init", **draw(FIELDS)}]
    if resources := draw(RESOURCES):
        spec["resources"] = resources

    if draw(st.booleans()):
        spec["activeDeadlineSeconds"] = draw(st.integers(1, 3))

    return {"metadata": {"labels": draw(WORDS), "annotations": draw(WORDS)}, "spec": spec}


@given(pods(), pods())
def test_what_was_overridden_can_be_undone(before: Object, after: Object) -> None:
    annotations = objects.annotations(after) | {keys.OVERRIDDEN: overriding.note(before, after)}
    chaperon = {**after, "metadata": {**after["metadata"], "annotations": annotations}}
    undone = overriding.undone(chaperon)
    assert objects.labels(undone) == objects.labels(before)
    views = [changeable.view(objects.spec(pod)) for pod in (undone, before)]
    assert views[0] == views[1]
    differ = {
        key
        for key in objects.annotations(before).keys() | objects.annotations(after).keys()
        if objects.annotations(before).get(key) != objects.annotations(after).get(key)
    }
    assert set(overriding.own_annotations(chaperon)) == differ


@given(
    st.recursive(
        st.none() | st.text(max_size=3),
        lambda v: st.dictionaries(
            st.sampled_from(["labels", "spec", "images", "resources", "containers", "main", "pod"]),
            v,
        ),
        max_leaves=8,
    )
)
def test_a_note_that_another_cluster_wrote_does_no_harm(value: Any) -> None:
    note = annotation_merge.text(value)
    metadata = {"labels": {}, "annotations": {keys.OVERRIDDEN: note}}
    spec = {"containers": [{"name": "main", "image": "a"}]}
    undone = overriding.undone({"metadata": metadata, "spec": spec})
    changeable.view(objects.spec(undone))


def test_a_note_that_is_nested_without_end_does_no_harm() -> None:
    note = '{"spec":{"resources":{"containers":{"main":' + '{"a":' * 400 + "1" + "}" * 404
    metadata = {"labels": {}, "annotations": {keys.OVERRIDDEN: note}}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    undone = overriding.undone({"metadata": metadata, "spec": {"containers": containers}})
    assert objects.spec(undone)["containers"][0]["resources"].keys() == {"requests"}
