"""The target's decisions about a chaperon and its delegate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from vnode.api import keys, objects
from vnode.pods import delegate
from vnode.pods.delegate import Absence

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def chaperon(*, phase="", annotations=None, policy="Always"):
    return {
        "metadata": {
            "name": "web-abcde",
            "namespace": "shop",
            "uid": "c-uid",
            "annotations": annotations or {},
        },
        "spec": {"restartPolicy": policy, "containers": [{"name": "main"}]},
        "status": {"phase": phase} if phase else {},
    }


def test_a_delegate_has_its_chaperons_name_spec_and_ownership():
    pod = delegate.build(chaperon(annotations={"a": "b"}))
    assert objects.key(pod) == "shop/web-abcde"
    assert pod["spec"]["containers"] == [{"name": "main"}]
    assert objects.annotations(pod) == {"a": "b"}
    assert objects.controller_uid(pod) == "c-uid"


def test_a_chaperon_that_never_had_a_delegate_gets_one():
    assert delegate.on_absence(chaperon(), NOW)[0] is Absence.CREATE


def test_a_lost_delegate_is_first_marked_for_the_source_to_judge():
    assert delegate.on_absence(chaperon(phase="Running"), NOW)[0] is Absence.MARK


@pytest.mark.parametrize(
    ("seconds", "policy", "expected"),
    [
        (59, "Always", Absence.WAIT),
        (60, "Always", Absence.CREATE),
        (3600, "OnFailure", Absence.WAIT),
        (3600, "Never", Absence.WAIT),
    ],
)
def test_a_pod_meant_to_run_always_is_created_again_after_a_minute_of_silence(
    seconds, policy, expected
):
    since = objects.timestamp(NOW - timedelta(seconds=seconds))
    annotations = {keys.POD_MISSING_SINCE: since, keys.IS_ALLOWED: "true"}
    lost = chaperon(phase="Running", policy=policy, annotations=annotations)
    assert delegate.on_absence(lost, NOW)[0] is expected


def test_a_pod_that_was_never_allowed_cannot_have_run_and_is_created_again():
    since = objects.timestamp(NOW - timedelta(seconds=60))
    lost = chaperon(phase="Pending", policy="Never", annotations={keys.POD_MISSING_SINCE: since})
    assert delegate.on_absence(lost, NOW)[0] is Absence.CREATE


@pytest.mark.parametrize(
    ("text", "left", "expected"),
    [
        ("5", None, 5),
        ("0", 30, 0),
        ("29", 30, 29),
        ("30", 30, None),
        ("31", 30, None),
        ("31", None, 31),
        ("", None, None),
        ("-1", None, None),
        ("5s", None, None),
        ("\u0665", None, None),
        ("9" * 5000, None, None),
    ],
)
def test_a_deletion_can_only_be_brought_forward(text, left, expected):
    pod = {"metadata": {} if left is None else {"deletionGracePeriodSeconds": left}}
    asking = chaperon(annotations={keys.GRACE_PERIOD: text})
    assert delegate.asked_grace(asking, pod) == expected


def test_the_wait_for_the_source_says_when_to_look_again():
    since = objects.timestamp(NOW - timedelta(seconds=20))
    lost = chaperon(phase="Running", annotations={keys.POD_MISSING_SINCE: since})
    assert delegate.on_absence(lost, NOW) == (Absence.WAIT, timedelta(seconds=40))


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REAL = {"key": "virtual-kubelet.io/provider", "operator": "NotIn", "values": ["admiralty"]}


def terms_of(pod):
    return pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def tolerant(**affinity):
    source = chaperon()
    source["spec"]["tolerations"] = [{"operator": "Exists"}]
    if affinity:
        source["spec"]["affinity"] = {"nodeAffinity": affinity}

    return source


def test_a_delegate_that_tolerates_everything_is_kept_off_virtual_nodes():
    assert "affinity" not in delegate.build(chaperon())["spec"]
    pod = delegate.build(tolerant())
    assert terms_of(pod) == [{"matchExpressions": [REAL]}]
    assert terms_of(delegate.build({**chaperon(), "spec": pod["spec"]})) == terms_of(pod)


def test_what_a_delegate_requires_of_its_node_stays_so():
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    terms = [{"matchExpressions": [zone]}, field, {}]
    pod = delegate.build(tolerant(**{REQUIRED: {"nodeSelectorTerms": terms}}))
    assert terms_of(pod) == [
        {"matchExpressions": [zone, REAL]},
        {**field, "matchExpressions": [REAL]},
        {},  # matches nothing, whatever else is wanted
    ]


def test_only_a_delegate_that_goes_on_still_asks_for_it():
    annotations = {keys.FORWARD: "", "a": "b", keys.SOURCE_POD_MANIFEST: "{}"}
    source = chaperon(annotations=annotations)
    assert objects.annotations(delegate.build(source)) == {"a": "b"}
    assert objects.annotations(delegate.build(source, goes_on=True)) == {"a": "b", keys.FORWARD: ""}
