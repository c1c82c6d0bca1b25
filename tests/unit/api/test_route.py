"""Where a pod has been, and whether it may go on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, route
from vnode.api.errors import ConfigError


def delegate(*, path: str | None = None, sender: str = "a", asks: bool = True) -> dict[str, Any]:
    annotations = {keys.FORWARD: ""} if asks else {}
    if sender:
        annotations[keys.PARENT_CLUSTER_UID] = sender

    if path is not None:
        annotations[keys.PATH] = path

    owner = {"kind": "PodChaperon", "uid": "c", "controller": True}
    return {"metadata": {"annotations": annotations, "ownerReferences": [owner]}}


def test_only_what_a_chaperon_controls_is_a_delegate() -> None:
    assert route.is_delegate(delegate())
    assert not route.is_delegate({"metadata": {"annotations": {keys.PATH: "a"}}})
    owner = {"kind": "PodChaperon", "uid": "c"}
    assert not route.is_delegate({"metadata": {"ownerReferences": [owner]}})


def test_the_first_step_is_known_by_the_sender_alone() -> None:
    assert route.path_of(delegate()) == ("a",)
    assert route.extend(delegate(), "b") == "a,b"


def test_a_sender_that_leaves_itself_out_is_added() -> None:
    assert route.path_of(delegate(path="x,y", sender="a")) == ("x", "y", "a")


def test_admiralty_says_nothing_of_where_a_pod_was() -> None:
    assert route.path_of(delegate(sender="")) == ()
    assert route.extend(delegate(sender=""), "b") == "b"


@pytest.mark.parametrize(
    ("pod", "here", "there", "words"),
    [
        (delegate(asks=False), "b", None, "does not ask to be sent on"),
        (delegate(path="a,b"), "b", None, "has been in this cluster before"),
        (delegate(path="x,a"), "b", "x", "came through that cluster"),
        (delegate(path="1,2,3,4,5,6", sender="7"), "8", None, "7 clusters already"),
        (delegate(path=""), "b", None, "is not one that an agent wrote"),
        (delegate(path="x,,y"), "b", None, "is not one that an agent wrote"),
        (delegate(path="x" * 65), "b", None, "is not one that an agent wrote"),
        (delegate(path="x," * 9999 + "y"), "b", None, "is not one that an agent wrote"),
    ],
)
def test_a_pod_that_does_not_go_on_says_why(
    pod: dict[str, Any], here: str, there: str | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        route.extend(pod, here, there)


def test_a_pod_that_elects_itself_asks_to_be_sent_on() -> None:
    pod = delegate(asks=False)
    pod["metadata"]["annotations"][keys.ELECT] = ""
    assert route.extend(pod, "b", "c") == "a,b"


@given(st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=40))
def test_whatever_the_way_no_cluster_sends_a_pod_twice_and_it_ends(steps: list[str]) -> None:
    """Clusters send a pod to each other as they like, until one of them refuses."""
    path, sender, sent_by = None, steps[0], [steps[0]]
    for here in steps[1:]:
        try:
            path = route.extend(delegate(path=path, sender=sender), here)
        except ConfigError:
            break

        sender = here
        sent_by.append(here)

    assert len(sent_by) == len(set(sent_by)) < route.LIMIT


@given(st.text(max_size=2000), st.text(max_size=80))
def test_whatever_another_cluster_writes_what_is_passed_on_is_bounded(path: str, uid: str) -> None:
    try:
        message = route.extend(delegate(path=path, sender=uid), "here", "there")
    except ConfigError as error:
        message = str(error)

    assert len(message) < 600
