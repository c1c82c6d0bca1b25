"""What one rule makes of a pod, and what it may not."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.overrides.making import a_pod, patch
from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.overrides import applying, checking
from vnode.overrides.rules import OverrideRule

TOKEN_VOLUME = {
    "name": "kube-api-access-x",
    "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
}


def applied(pod: Object, *rules: Object) -> Object:
    """Check and apply rules to a copy, in order."""
    result = applying.clone(pod)
    for each in rules:
        rule = msgspec.convert(each, OverrideRule)
        checking.check(rule)
        applying.apply(result, rule)

    return result


def containers(*rules: Object, **spec: Any) -> list[Any]:
    found: list[Any] = applied(a_pod(**spec), *rules)["spec"]["containers"]
    return found


# --- what is changed


def test_an_image_gets_another_registry_in_all_containers_or_in_some() -> None:
    rule: Object = {"image": [{"registry": "m.example"}]}
    assert [c["image"] for c in containers(rule)] == ["m.example/nginx:1", "m.example/team/log:2"]
    rule = {"image": [{"registry": "m.example", "containers": ["log", "other"]}]}
    assert [c["image"] for c in containers(rule)] == ["nginx:1", "m.example/team/log:2"]


def test_init_containers_count_as_containers() -> None:
    init = [{"name": "setup", "image": "setup"}]
    pod = applied(a_pod(initContainers=init), {"image": [{"tag": "3"}]})
    assert pod["spec"]["initContainers"][0]["image"] == "setup:3"


def test_words_are_replaced_appended_or_left_to_the_image() -> None:
    only: Object = {"containers": ["web"]}
    rules: list[Object] = [
        {"command": [{**only, "append": ["fast"]}], "args": [{**only, "set": ["-v"]}]},
        {"args": [{**only, "append": ["-w"]}]},
    ]
    web = containers(*rules)[0]
    assert (web["command"], web["args"]) == (["run", "fast"], ["-v", "-w"])
    assert "command" not in containers({"command": [{"set": []}]})[0]


def test_variables_are_replaced_in_place_added_and_removed() -> None:
    rule = {
        "env": [
            {"set": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"remove": ["B"], "containers": ["log"]},
        ]
    }
    web, log = containers(rule)
    assert web["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert log["env"] == [{"name": "A", "value": "1"}]


def test_maps_are_added_to() -> None:
    rule: Object = {
        "labels": {"team": "blue"},
        "annotations": {"note": "2", "more": "3"},
        "nodeSelector": {"gpu": "yes"},
        "resources": [{"requests": {"cpu": "1"}, "limits": {"cpu": 2}, "containers": ["web"]}],
    }
    pod = applied(a_pod(nodeSelector={"disk": "ssd"}), rule)
    assert pod["metadata"] == {
        "labels": {"app": "web", "team": "blue"},
        "annotations": {"note": "2", "more": "3"},
    }
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd", "gpu": "yes"}
    wanted = {"requests": {"cpu": "1"}, "limits": {"cpu": 2}}
    assert pod["spec"]["containers"][0]["resources"] == wanted
    assert "resources" not in pod["spec"]["containers"][1]


def test_tolerations_are_added_once_and_the_runtime_class_is_replaced() -> None:
    rule: Object = {"tolerations": [{"key": "gpu", "operator": "Exists"}], "runtimeClassName": "k"}
    pod = applied(a_pod(), rule, rule)
    assert pod["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert pod["spec"]["runtimeClassName"] == "k"
    assert "runtimeClassName" not in applied(pod, {"runtimeClassName": ""})["spec"]


def test_a_patch_sees_what_the_fields_of_its_rule_and_earlier_rules_have_done() -> None:
    rules = [
        {"image": [{"tag": "2"}]},
        {"image": [{"tag": "3"}], **patch("test", "/spec/containers/0/image", value="nginx:3")},
        patch("copy", "/metadata/annotations/was", **{"from": "/spec/containers/0/image"}),
    ]
    assert applied(a_pod(), *rules)["metadata"]["annotations"]["was"] == "nginx:3"


def test_a_patch_may_empty_what_others_fill_again() -> None:
    rules = [patch("remove", "/metadata/labels"), {"labels": {"b": "2"}}]
    assert applied(a_pod(), *rules)["metadata"]["labels"] == {"b": "2"}


def test_the_old_name_of_the_service_account_goes_with_the_account() -> None:
    pod = a_pod(serviceAccountName="a", serviceAccount="a")
    spec = applied(pod, patch("replace", "/spec/serviceAccountName", value="b"))["spec"]
    assert (spec["serviceAccountName"], "serviceAccount" in spec) == ("b", False)


RULES = st.sampled_from(
    [
        {"image": [{"registry": "m.example", "tag": "7"}]},
        {"env": [{"set": [{"name": "A", "value": "9"}], "remove": ["C"]}]},
        {"command": [{"set": ["x"]}], "args": [{"set": ["y"]}]},
        {"labels": {"l": "1"}, "annotations": {"a": "1"}, "nodeSelector": {"n": "1"}},
        {"resources": [{"requests": {"cpu": "1"}}], "tolerations": [{"key": "k"}]},
        {"runtimeClassName": "kata"},
        patch("add", "/spec/securityContext/runAsUser", value=7),
    ]
)


@given(st.lists(RULES, max_size=4))
def test_rules_are_deterministic_and_do_nothing_more_when_they_come_again(
    rules: list[Object],
) -> None:
    pod = a_pod()
    before = copy.deepcopy(pod)
    once = applied(pod, *rules)
    assert pod == before
    assert applied(pod, *rules) == once
    if rules:
        assert applied(once, rules[-1]) == once


# --- what is refused


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (patch("add", "/spec/schedulerName", value="x"), "chooses the scheduler"),
        (patch("add", "/spec/nodeName", value="x"), "target's scheduler"),
        (patch("add", "/spec/schedulingGates/-", value={"name": "g"}), "source has waited"),
        (patch("add", "/spec/terminationGracePeriodSeconds", value=1), "the time that its proxy"),
        (patch("add", "/spec/automountServiceAccountToken", value=True), "whose tokens"),
        (patch("add", "/spec/containers/-", value={"name": "x"}), "other containers"),
        (patch("replace", "/spec/containers/0/name", value="x"), "other containers"),
        (patch("add", "/metadata/name", value="x"), "out of reach"),
        (patch("add", "/metadata/ownerReferences/-", value={}), "out of reach"),
        (patch("add", "/metadata/finalizers/-", value="x"), "out of reach"),
        (patch("add", "/metadata/labels/vnode.dev~1x", value="x"), "vnode itself relies"),
        (patch("add", "", value={}), "out of reach"),
        (patch("add", "/status/phase", value="x"), "out of reach"),
        (patch("add", "/spec/x"), "add needs a value"),
        (patch("copy", "/spec/x"), "from is for copy and move"),
        (patch("move", "/spec/x", **{"from": "/spec/nodeName"}), "target's scheduler"),
        ({"labels": {keys.PARENT_UID: "x"}}, "vnode itself relies"),
        ({"annotations": {keys.IS_ALLOWED: "true"}}, "vnode itself relies"),
        ({"labels": {"a": "no value"}}, "cannot be the value of label a"),
        ({"labels": {"a b": "x"}}, "cannot be a key"),
        ({"image": [{}]}, "give it a registry"),
        ({"image": [{"registry": "mirror"}]}, "registry is no host"),
        ({"image": [{"repository": "quay.io/a"}]}, 'set registry to "quay.io"'),
        ({"image": [{"tag": "a b"}]}, "tag is none"),
        ({"image": [{"digest": "sha256:1"}]}, "digest is none"),
        ({"command": [{"set": ["a"], "append": ["b"]}]}, "either set or append"),
        ({"env": [{"set": [{"name": "A"}], "remove": ["A"]}]}, "is there twice"),
        ({"env": [{"set": [{"name": "A", "value": "", "valueFrom": {}}]}]}, "take one of them"),
        ({"resources": [{"requests": {"cpu": "x"}}]}, r"requests\.cpu"),
        (
            {"resources": [{"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}]},
            "more than the limit",
        ),
        ({"runtimeClassName": "A B"}, "name of a RuntimeClass"),
        ({}, "changes nothing"),
    ],
)
def test_a_rule_that_can_never_work_is_refused_before_there_is_a_pod(
    rule: Object, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        checking.check(msgspec.convert(rule, OverrideRule))


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (patch("replace", "/metadata/labels", value={}), "vnode itself relies"),
        (patch("add", "/spec/containers/0/env", value=[{"value": "x"}]), "is no pod: spec"),
        (patch("add", "/spec/containers/0/envFrom", value=[1]), "is no pod: spec"),
        (patch("add", "/spec/imagePullSecrets", value=["x"]), "is no pod: spec"),
        (patch("add", "/spec/volumes/-", value={"name": "v", "csi": {"secretRef": 1}}), "no pod"),
        (patch("add", "/spec/volumes/-", value=TOKEN_VOLUME), "tokens of service accounts"),
        (patch("add", "/metadata/labels", value={"a": 1}), "is no pod: metadata"),
        (patch("remove", "/spec/hostNetwork"), 'there is no "hostNetwork"'),
    ],
)
def test_what_shows_with_a_pod_only_is_refused_then(rule: Object, why: str) -> None:
    pod = a_pod()
    pod["metadata"]["labels"][keys.PARENT_UID] = "uid"
    with pytest.raises(ConfigError, match=why):
        applied(pod, rule)


def test_a_mount_in_the_place_of_the_token_is_refused() -> None:
    mount = {"name": "v", "mountPath": keys.SERVICE_ACCOUNT_MOUNT}
    with pytest.raises(ConfigError, match="tokens of service accounts"):
        applied(a_pod(), patch("add", "/spec/containers/0/volumeMounts/-", value=mount))
