"""What containers are shown of their own pod is the same in a delegate as in its proxy."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.permitted import MANIFESTS
from vnode.api import keys, objects
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.pods import changes, chaperons, delegate
from vnode.pods.source import proxy_state
from vnode.targets.kept_chaperons import trim_chaperon

INDEX = "batch.kubernetes.io/job-completion-index"
PARENT = Identity("c1", "uid-of-c1")
_PATH = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_EXPANSION = re.compile(r"\$\$|\$\((\w+)\)")


def label(key: str) -> str:
    return f"metadata.labels['{key}']"


def annotation(key: str) -> str:
    return f"metadata.annotations['{key}']"


def pod(*paths: str, labels: Any = None, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    """Return a proxy as the webhook makes it, which shows those fields of itself in every way."""
    refs = [{"fieldRef": {"apiVersion": "v1", "fieldPath": path}} for path in paths]
    env = [{"name": f"V{number}", "valueFrom": ref} for number, ref in enumerate(refs)]
    items = [{"path": str(number), **ref} for number, ref in enumerate(refs)]
    source = {
        "metadata": {
            "name": "web-0",
            "namespace": "shop",
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {
            "containers": [{"name": "main", "env": env}],
            "initContainers": [{"name": "init", "env": env}],
            "volumes": [
                {"name": "own", "downwardAPI": {"items": items}},
                {"name": "all", "projected": {"sources": [{"downwardAPI": {"items": items}}]}},
            ],
            **spec,
        },
    }
    return {
        "metadata": {
            **source["metadata"],
            "uid": "uid-0",
            "annotations": {**(annotations or {}), keys.SOURCE_POD_MANIFEST: json.dumps(source)},
        },
        "spec": {
            **source["spec"],
            "schedulerName": keys.PROXY_SCHEDULER,
            "ephemeralContainers": [{"name": "shell", "env": env}],
        },
    }


def send(proxy: dict[str, Any], parent: Identity = PARENT, **flags: Any) -> dict[str, Any]:
    """Return the delegate of a proxy."""
    built = chaperons.build(
        proxy, parent, "default/c2", manifests=MANIFESTS, allowed=True, finalizer=True, **flags
    )
    built["metadata"]["uid"] = "uid-of-chaperon"
    made = delegate.build(built, goes_on=True)
    made["spec"]["ephemeralContainers"] = built["spec"]["ephemeralContainers"]
    made["metadata"]["uid"] = f"{objects.uid(proxy)}-sent"
    return made


def field(of: dict[str, Any], path: str) -> str:
    """Return what a kubelet finds there."""
    if keyed := _PATH.fullmatch(path):
        return str((of["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))

    return str(of["metadata"][path.rpartition(".")[2]])


def expanded(text: str) -> str:
    """Return what a kubelet makes of a variable's value."""
    return _EXPANSION.sub(lambda found: "$" if found[0] == "$$" else "expanded", text)


def seen(of: dict[str, Any]) -> list[list[str]]:
    """Return the fields of a pod, in order, as each container and each volume has them."""
    spec = of["spec"]
    containers = [c for part in ("containers", "initContainers") for c in spec[part]]
    ways = [
        [
            field(of, entry["valueFrom"]["fieldRef"]["fieldPath"])
            if "valueFrom" in entry
            else expanded(entry["value"])
            for entry in container["env"]
        ]
        for container in (*containers, *spec["ephemeralContainers"])
    ]
    own, projected = spec["volumes"]
    both = (own["downwardAPI"], projected["projected"]["sources"][0]["downwardAPI"])
    files = [[item["fieldRef"]["fieldPath"] for item in one["items"]] for one in both]
    return ways + [[field(of, path) for path in paths] for paths in files]


def all_show(of: dict[str, Any], *values: str) -> bool:
    return seen(of) == [list(values)] * 5


def test_the_index_of_a_job_and_labels_are_shown_under_the_keys_that_they_have_there():
    labels = {INDEX: "3", "team": "blue"}
    sent = send(pod(label(INDEX), label("team"), label("none"), labels=labels))
    assert all_show(sent, "3", "blue", "")
    (index, *_others) = sent["spec"]["containers"][0]["env"]
    there = {"apiVersion": "v1", "fieldPath": label(keys.PREFIX + "job-completion-index")}
    assert index["valueFrom"] == {"fieldRef": there}  # which goes on to show what the label says


def test_a_label_that_keeps_its_key_by_its_value_is_shown_by_that_key():
    annotations = {keys.NO_PREFIX_LABEL_REGEXP: "^app=web$"}
    for value in ("web", "db"):
        sent = send(pod(label("app"), labels={"app": value}, annotations=annotations))
        assert all_show(sent, value)


def test_a_pod_knows_itself_by_the_name_and_uid_of_its_proxy():
    sent = send(pod("metadata.name", "metadata.uid", "metadata.namespace"))
    assert all_show(sent, "web-0", "uid-0", "shop")
    name, uid, _namespace = sent["spec"]["containers"][0]["env"]
    assert (name, uid) == ({"name": "V0", "value": "web-0"}, {"name": "V1", "value": "uid-0"})


def test_of_two_labels_with_one_last_segment_each_reference_shows_its_own():
    labels = {"app.kubernetes.io/name": "shop", "name": "other"}
    sent = send(pod(label("app.kubernetes.io/name"), label("name"), label("x/name"), labels=labels))
    assert all_show(sent, "shop", "other", "")


def test_what_stays_behind_is_shown_as_the_user_wrote_it():
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    annotations = {keys.ELECT: "$(HOME) costs $$5", "kueue.x-k8s.io/x": "y", "own": "z"}
    paths = (label("kueue.x-k8s.io/queue-name"), *map(annotation, annotations))
    sent = send(pod(*paths, annotation(keys.PATH), labels=labels, annotations=annotations))
    assert all_show(sent, "team", "$(HOME) costs $$5", "y", "z", "")
    assert annotation("own") in str(sent["spec"]["containers"])  # it may change


def test_topology_labels_are_the_targets_to_set():
    path = label("topology.kubernetes.io/zone")
    sent = send(pod(path, labels={"topology.kubernetes.io/zone": "of-the-virtual-node"}))
    assert path in str(sent["spec"]["containers"])
    sent["metadata"]["labels"]["topology.kubernetes.io/zone"] = "there"
    assert all_show(sent, "there")


def test_other_references_stay_as_they_are():
    env = [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "PLAIN", "value": "$(IP)"},
    ]
    proxy = pod("metadata.labels", containers=[{"name": "main", "env": env}])
    spec = send(proxy)["spec"]
    assert spec["containers"] == [{"name": "main", "env": env}]
    (item,) = spec["volumes"][0]["downwardAPI"]["items"]
    assert item["fieldRef"]["fieldPath"] == "metadata.labels"


@pytest.mark.parametrize("rewritten", [True, False], ids=["vnode", "admiralty"])
def test_in_a_chain_the_first_proxy_counts(rewritten):
    paths: tuple[str, ...] = ("metadata.name", "metadata.uid", label(INDEX), annotation(keys.ELECT))
    first = pod(*paths, labels={INDEX: "3"}, annotations={keys.FORWARD: "", keys.ELECT: "x"})
    sent = send(first)
    if not rewritten:  # an agent that leaves references as they are
        paths = ("metadata.name", "metadata.uid")
        own = pod(*paths)
        sent["spec"] = {**json.loads(own["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST])}
        sent["spec"] = sent["spec"]["spec"] | {
            "ephemeralContainers": own["spec"]["ephemeralContainers"]
        }

    manifest = json.dumps(sent)
    sent["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST] = manifest
    sent["spec"] = {**sent["spec"], "schedulerName": keys.PROXY_SCHEDULER}
    last = send(sent, Identity("c2", "uid-of-c2"), target_uid="uid-of-c3")
    assert objects.name(last).startswith("web-0-")
    shown = ("web-0", "uid-0", "3", "x") if rewritten else ("web-0", "uid-0")
    assert all_show(last, *shown)


def test_a_pod_cannot_make_up_what_its_delegate_shows():
    proxy = pod("metadata.name", annotations={keys.FIELD + "name": "another"})
    assert all_show(send(proxy), "web-0")
    made_up = send(pod(annotations={keys.FIELD + "other": "x"}))
    assert keys.FIELD + "other" not in objects.annotations(made_up)


def test_a_pod_that_nobody_changes_is_no_news_for_its_chaperon():
    labels = {"x/app": "a", "app": "b", "kueue.x-k8s.io/queue-name": "q"}
    proxy = pod("metadata.name", label("x/app"), label("app"), labels=labels)
    proxy["spec"]["nodeName"] = "admiralty-default-c2"
    proxy["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = "w"
    built = chaperons.build(
        proxy, PARENT, "default/c2", manifests=MANIFESTS, allowed=True, finalizer=True
    )
    assert not changes.is_news(proxy_state.trim(proxy), trim_chaperon(built), PARENT)
    assert changes.chaperon_patch(proxy, built, trim_chaperon(built)) == {}


def test_nothing_of_the_proxy_is_changed():
    proxy = pod("metadata.name", label("a"), labels={"a": "b"})
    before = copy.deepcopy(proxy)
    send(proxy)
    assert proxy == before


_key = st.sampled_from(["app", "x/app", "y/app", "tier", "x/tier", "kueue.x-k8s.io/tier", INDEX])
_value = st.sampled_from(["", "a", "b", "c"])
_note = st.sampled_from(["own", "x/own", keys.ELECT, keys.NO_RESERVATION, "kueue.x-k8s.io/own"])
_path = (
    _key.map(label)
    | _note.map(annotation)
    | st.sampled_from(["metadata.name", "metadata.uid", "metadata.namespace"])
)


@given(
    st.lists(_path, max_size=6),
    st.dictionaries(_key, _value),
    st.dictionaries(_note, _value),
    st.sampled_from(["", "^x/", "=a$", "app=b", "."]),
)
def test_every_field_is_shown_as_the_proxy_has_it(paths, labels, annotations, kept):
    proxy = pod(
        *paths, labels=labels, annotations={**annotations, keys.NO_PREFIX_LABEL_REGEXP: kept}
    )
    assert all_show(send(proxy), *(field(proxy, path) for path in paths))


def test_variables_do_not_repeat_a_long_annotation_thousands_of_times():
    key = f"{keys.OWN_PREFIX}mine"
    proxy = pod(*[annotation(key)] * 10_000, annotations={key: "$" * 100_000})
    with pytest.raises(ConfigError, match="more than 262144 characters"):
        send(proxy)


def test_a_pod_shows_a_bounded_number_of_fields():
    with pytest.raises(ConfigError, match="over 200 different fields"):
        send(pod(*[label(f"l{number}") for number in range(201)]))


def test_many_containers_may_show_the_same_fields():
    key = f"{keys.OWN_PREFIX}mine"
    assert all_show(send(pod(*[annotation(key)] * 1000, annotations={key: "x"})), *["x"] * 1000)
