"""Whether a delegate goes on from here, by what is known of the targets."""

from __future__ import annotations

from typing import Any, cast

import pytest

from vnode.api import keys, scheduled_condition
from vnode.api.target_key import TargetKey
from vnode.pods import chains
from vnode.pods.source import candidates
from vnode.runtime.link import Link
from vnode.runtime.links import Links

C3 = TargetKey("shop", "c3")
C4 = TargetKey("", "c4")


class Known:
    """A link of which only one thing is asked."""

    def __init__(self, key: TargetKey, cluster_uid: str | None) -> None:
        self.target = key
        self.node_name = key.node_name
        self.cluster_uid = cluster_uid


def links(**uids: str | None) -> Links:
    found = Links()
    for name, uid in uids.items():
        found.add(cast(Link, Known({"c3": C3, "c4": C4}[name], uid)))

    return found


def chaperon(**annotations: str) -> dict[str, Any]:
    own = {f"vnode.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    annotations = {keys.FORWARD: "", keys.PARENT_CLUSTER_UID: "one", **own}
    return {"metadata": {"name": "web", "namespace": "shop", "annotations": annotations}}


@pytest.mark.parametrize(
    ("targets", "known", "expected"),
    [
        ([], {}, False),
        ([C3], {"c3": "three"}, True),
        ([C3], {"c3": None}, True),  # connected, and its summary not seen yet
        ([C3], {}, True),  # not connected at the moment
        ([C3], {"c3": ""}, False),  # Admiralty, which does not say which cluster it is
        ([C3], {"c3": "one"}, False),  # the pod came from there
        ([C3, C4], {"c3": "one", "c4": "four"}, True),
        ([TargetKey("other", "c3")], {}, False),
    ],
)
def test_a_pod_goes_on_where_some_target_is_not_behind_it(
    targets: list[TargetKey], known: dict[str, str | None], expected: bool
) -> None:
    def usable(namespace: str) -> list[TargetKey]:
        return [key for key in targets if key.namespace in ("", namespace)]

    assert chains.goes_on(chaperon(), "two", usable, links(**known)) is expected


def test_a_pod_that_does_not_ask_or_was_here_stays() -> None:
    known = links(c3="three")
    plain = chaperon()
    del plain["metadata"]["annotations"][keys.FORWARD]
    assert not chains.goes_on(plain, "two", lambda _: [C3], known)
    assert not chains.goes_on(chaperon(path="two,one"), "two", lambda _: [C3], known)
    assert not chains.goes_on(chaperon(path=","), "two", lambda _: [C3], known)


def test_a_source_reads_a_delegate_that_is_stuck_as_rejected() -> None:
    bound = {"type": "PodScheduled", "status": "True"}
    pod = {"metadata": {"uid": "u"}, "status": {"conditions": [bound]}}
    status = chains.not_sent_on(pod, "no way")["status"]
    assert [entry["type"] for entry in status["conditions"]] == ["PodScheduled"]
    assert scheduled_condition.rejection(status) == "no way"
    assert candidates.read({"status": status}, 0).state is candidates.CandidateState.REJECTED
