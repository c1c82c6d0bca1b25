"""Annotations with our prefixes change nothing for their user but what is documented of them."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.permitted import MANIFESTS
from tests.unit.pods import strategic
from vnode.api import keys, objects
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.pods import chaperons, delegate, delegate_report
from vnode.pods.source import feedback

US = Identity("c1", "uid-of-c1")
FOR_USERS = {
    keys.ELECT,
    keys.NO_ELECT,
    keys.NO_RESERVATION,
    keys.PROXY_CONSTRAINTS,
    keys.USE_SPEC_CONSTRAINTS,
    keys.NO_PREFIX_LABEL_REGEXP,
    keys.FORWARD,
    keys.SOURCE_POD_MANIFEST,  # the pod, as its user wrote it: docs/security.md
}
OURS = sorted(
    key
    for key in vars(keys).values()
    if isinstance(key, str)
    and key.startswith((keys.PREFIX, keys.OWN_PREFIX))
    and key not in {*FOR_USERS, keys.PREFIX, keys.OWN_PREFIX}
)
TYPES = ("Ready", "PodScheduled", "DisruptionTarget", "example.com/gate")
CONDITIONS = [{"type": type_, "status": "True", "reason": "x"} for type_ in TYPES]
STATUS = {"phase": "Running", "podIP": "10.0.0.1", "conditions": CONDITIONS}

values = st.sampled_from(
    [
        "",
        "true",
        "x" * 300,
        "../../x",
        "c9",
        "\x00\x1b",
        "{}",
        json.dumps({"annotations": {"team": "b"}, "labels": {"app": "x"}}),
        json.dumps({"images": {"containers": {"main": "evil"}}}),
        json.dumps(dict.fromkeys(TYPES, "x")),
        json.dumps(dict.fromkeys(TYPES)),
        json.dumps({"team": "b"}),
        json.dumps({"conditions": {"Ready": {"status": "True"}}}),
        json.dumps({"example.com/gate": {"type": "example.com/gate", "status": "False"}}),
    ]
) | st.text(max_size=20)
written = st.dictionaries(
    st.sampled_from(OURS)
    | st.sampled_from([f"{keys.FIELD}{name}" for name in ("name", "namespace", "uid", "x")])
    | st.text(max_size=8).map(lambda text: keys.OWN_PREFIX + text)
    | st.text(max_size=8).map(lambda text: keys.PREFIX + text),
    values,
    max_size=6,
).map(lambda notes: {k: v for k, v in notes.items() if k not in FOR_USERS})


def proxy(notes: dict[str, str] | None = None) -> Object:
    env = [{"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    container: Object = {"name": "main", "image": "busybox", "env": env}
    return {
        "metadata": {
            "name": "web",
            "namespace": "team",
            "uid": "u1",
            "labels": {"app": "web"},
            "annotations": {"team": "a", **(notes or {})},
        },
        "spec": {
            "containers": [container],
            "schedulerName": keys.PROXY_SCHEDULER,
            "nodeName": "admiralty-team-c2",
            "readinessGates": [{"conditionType": "example.com/gate"}],
        },
        "status": copy.deepcopy(STATUS),
    }


def chaperon(pod: Object) -> Object:
    return chaperons.build(pod, US, "team/c2", manifests=MANIFESTS, allowed=True, finalizer=True)


@given(written)
def test_they_change_nothing_that_is_sent_to_a_target(notes: dict[str, str]) -> None:
    assert chaperon(proxy(notes)) == chaperon(proxy())


@given(written)
def test_they_change_nothing_of_a_delegate_that_a_target_makes(notes: dict[str, str]) -> None:
    plain, noted = chaperon(proxy()), chaperon(proxy())
    noted["metadata"]["annotations"] = {**notes, **objects.annotations(plain)}
    made, of_plain = delegate.build(noted), delegate.build(plain)
    assert made["metadata"].pop("annotations").items() >= (
        of_plain["metadata"].pop("annotations").items()
    )
    assert made == of_plain


def patched(pod: Object, reported: Object) -> Any:
    strategic.apply(pod, feedback.status_patch(pod, reported))
    return pod["status"]


@given(written, st.sampled_from([{}, STATUS, {"phase": "Running", "conditions": CONDITIONS[:1]}]))
def test_a_status_that_comes_back_is_the_same(notes: dict[str, str], status: Object) -> None:
    reported = {**chaperon(proxy()), "status": copy.deepcopy(status)}
    plain, noted = patched(proxy(), reported), patched(proxy(notes), reported)
    # By this record a user may have a condition of their own pod taken for the delegate's, which
    # has gone there: then it goes here, too.
    if keys.FED_BACK_CONDITIONS in notes:
        types = {entry["type"] for entry in plain.pop("conditions")}
        assert {entry["type"] for entry in noted.pop("conditions")} <= types

    assert noted == plain


@given(written)
def test_what_a_user_of_a_target_writes_on_a_delegate_comes_not_back(notes: dict[str, str]) -> None:
    sent = chaperon(proxy())
    pod = {**delegate.build(sent), "status": STATUS}
    plain = delegate_report.build(sent, pod)
    pod["metadata"]["annotations"] = {**notes, **objects.annotations(pod)}
    assert delegate_report.build(sent, pod) == plain
