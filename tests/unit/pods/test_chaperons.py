"""What of a proxy pod goes to a target, and under which names."""

from __future__ import annotations

import copy

import pytest

from tests.permitted import MANIFESTS
from tests.unit.pods.proxy_pods import PARENT, build, proxy, source_with
from vnode.api import keys, objects
from vnode.api.errors import ConfigError
from vnode.api.priorities import PriorityMapping
from vnode.pods import chaperon_spec, chaperons


def test_the_spec_is_the_users_and_not_the_proxys():
    spec = build(proxy(terminationGracePeriodSeconds=0))["spec"]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["containers"] == [{"name": "main", "image": "nginx"}]


def test_the_candidate_scheduler_takes_over_and_priority_is_the_targets_to_compute():
    spec = build(proxy())["spec"]
    assert spec["schedulerName"] == keys.CANDIDATE_SCHEDULER
    assert "priority" not in spec


def test_the_class_is_the_targets_and_whether_it_preempts_is_up_to_it():
    rules = PriorityMapping({"urgent": "high", "": "low"})
    known = {"priority": 9, "preemptionPolicy": "PreemptLowerPriority"}
    spec = build(proxy(priorityClassName="urgent", **known), priorities=rules)["spec"]
    assert spec["priorityClassName"] == "high"
    assert not {"priority", "preemptionPolicy"} & spec.keys()
    assert build(proxy(**known), priorities=rules)["spec"]["priorityClassName"] == "low"


def test_that_a_pod_must_not_preempt_travels():
    spec = build(proxy(priorityClassName="urgent", priority=9, preemptionPolicy="Never"))["spec"]
    assert (spec["priorityClassName"], spec["preemptionPolicy"]) == ("urgent", "Never")


def test_labels_get_admiraltys_prefix_whatever_their_domain():
    labels = build(proxy())["metadata"]["labels"]
    assert labels[keys.PREFIX + "app"] == "web"
    assert labels[keys.PREFIX + "tier"] == "front"
    assert labels[keys.PARENT_UID] == "u1"
    assert labels[keys.PARENT_CLUSTER_NAME] == "c1"


def test_own_annotations_stay_and_others_travel():
    annotations = build(proxy())["metadata"]["annotations"]
    assert annotations["team"] == "a"
    assert keys.ELECT not in annotations
    assert keys.SOURCE_POD_MANIFEST not in annotations
    assert annotations[keys.PARENT_NAMESPACE] == "shop"
    assert annotations[keys.PARENT_NAME] == "web-0"
    assert annotations[keys.PARENT_CLUSTER_UID] == "uid-of-c1"
    assert annotations[keys.TARGET] == "default/c2"


def test_labels_that_match_the_regexp_keep_their_keys():
    source = source_with()
    source["metadata"]["annotations"] = {keys.NO_PREFIX_LABEL_REGEXP: "^app="}
    assert build(proxy(source))["metadata"]["labels"]["app"] == "web"


def test_a_bad_regexp_is_an_error_that_names_the_annotation():
    source = source_with()
    source["metadata"]["annotations"] = {keys.NO_PREFIX_LABEL_REGEXP: "("}
    with pytest.raises(ConfigError, match="no-prefix-label-regexp"):
        build(proxy(source))


def test_constraints_that_chose_the_virtual_node_stay_behind():
    source = source_with(
        nodeSelector={"a": "b"}, tolerations=[{}], affinity={}, topologySpreadConstraints=[]
    )
    source["metadata"]["annotations"] = {keys.USE_SPEC_CONSTRAINTS: ""}
    spec = build(proxy(source))["spec"]
    assert not {"nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"} & set(spec)


def test_what_chooses_a_node_in_a_target_is_what_the_user_wrote_of_nodes():
    toleration = {"key": "gpu", "operator": "Exists"}
    source = source_with(nodeSelector={"disk": "ssd"}, tolerations=[toleration])
    found = chaperon_spec.constraints(proxy(source), MANIFESTS)
    assert found == {"nodeSelector": {"disk": "ssd"}, "tolerations": [toleration]}
    source["metadata"]["annotations"] = {keys.USE_SPEC_CONSTRAINTS: ""}
    assert chaperon_spec.constraints(proxy(source), MANIFESTS) == {}


def test_what_chooses_a_node_behind_the_target_is_not_known():
    assert chaperon_spec.constraints(proxy(annotations={keys.FORWARD: ""}), MANIFESTS) is None
    unreadable = proxy(annotations={keys.SOURCE_POD_MANIFEST: "[]"})
    assert chaperon_spec.constraints(unreadable, MANIFESTS) is None


def test_selectors_in_affinity_and_spread_are_renamed_as_the_labels_are():
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    source = source_with(
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "labelSelector": {
                    "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]
                },
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
    )
    spec = build(proxy(source))["spec"]
    anti = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    own = {keys.PARENT_CLUSTER_NAME: "c1"}
    assert anti[0]["labelSelector"]["matchLabels"] == {keys.PREFIX + "app": "web", **own}
    assert anti[0]["topologyKey"] == "zone"
    spread = spec["topologySpreadConstraints"][0]
    assert spread["labelSelector"]["matchExpressions"][0]["key"] == keys.PREFIX + "app"
    assert spread["labelSelector"]["matchLabels"] == own
    assert spread["matchLabelKeys"] == [keys.PREFIX + "pod-template-hash"]


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": {"kept": "x"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
        {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
    ],
)
def test_a_selector_that_may_mean_pods_of_the_target_selects_them_still(selector):
    spread = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": selector}
    source = source_with(topologySpreadConstraints=[spread])
    source["metadata"]["annotations"] = {keys.NO_PREFIX_LABEL_REGEXP: "^kept="}
    (made,) = build(proxy(source))["spec"]["topologySpreadConstraints"]
    assert keys.PARENT_CLUSTER_NAME not in made["labelSelector"].get("matchLabels", {})


def test_node_affinity_of_the_target_is_left_alone():
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec = build(proxy(source_with(affinity=affinity)))["spec"]
    assert spec["affinity"] == affinity


def test_building_changes_nothing_of_the_proxy():
    pod = proxy()
    before = copy.deepcopy(pod)
    build(pod)
    assert pod == before


def test_without_reservation_the_users_scheduler_stays():
    pod = proxy(annotations={keys.NO_RESERVATION: ""})
    assert chaperons.skips_reservation(pod)
    assert build(pod, allowed=True)["spec"]["schedulerName"] == "default-scheduler"
    assert build(pod, allowed=True)["metadata"]["annotations"][keys.IS_ALLOWED] == "true"


def test_a_pod_that_never_met_the_webhook_is_its_own_manifest():
    pod = {
        "metadata": {"name": "x", "namespace": "shop", "uid": "u2", "labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "main"}],
            "nodeName": "admiralty-c2",
            "schedulerName": "default-scheduler",
        },
    }
    built = build(pod, allowed=True)
    assert "nodeName" not in built["spec"]
    assert built["metadata"]["labels"][keys.PREFIX + "a"] == "b"


def test_a_manifest_in_yaml_as_admiralty_writes_it_is_read():
    pod = proxy()
    pod["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST] = (
        "metadata:\n  name: web-0\nspec:\n  containers:\n  - name: other\n  nodeSelector: {a: b}\n"
    )
    spec = build(pod)["spec"]
    assert spec["nodeSelector"] == {"a": "b"}
    assert spec["containers"] == [{"name": "main", "image": "nginx"}]


@pytest.mark.parametrize("text", ["", "[]", "a: [", "metadata: {}", "\x00"])
def test_an_unreadable_manifest_is_an_error_that_names_the_annotation(text):
    pod = proxy()
    pod["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST] = text
    with pytest.raises(ConfigError, match="sourcepod-manifest"):
        build(pod)


def test_the_name_follows_from_the_uid_so_that_a_repeated_create_meets_the_first():
    first, again = build(proxy()), build(proxy())
    assert first["metadata"]["name"] == again["metadata"]["name"]
    assert first["metadata"]["name"].startswith("web-0-")


def test_readiness_gates_go_only_where_their_conditions_can():
    gates = [{"conditionType": "example.com/lb-ready"}]
    pod = proxy(source_with(readinessGates=gates))
    assert objects.spec(build(pod))["readinessGates"] == gates
    assert "readinessGates" not in objects.spec(build(pod, finalizer=False))


def test_the_overhead_is_that_of_the_targets_runtime_class():
    source = source_with(runtimeClassName="kata", overhead={"podFixed": {"cpu": "250m"}})
    spec = build(proxy(source))["spec"]
    assert spec["runtimeClassName"] == "kata"
    assert "overhead" not in spec


def test_constraints_on_virtual_nodes_and_what_queued_the_pod_stay_behind():
    queue = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/managed": "true"}
    source = source_with(
        nodeSelector={keys.PROVIDER_LABEL: keys.PROVIDER, "disk": "ssd"},
        tolerations=[{"key": keys.PROVIDER_LABEL, "operator": "Exists"}],
        schedulingGates=[{"name": "kueue.x-k8s.io/admission"}],
    )
    source["metadata"]["labels"] = {"app": "web", **queue}
    source["metadata"]["annotations"] = {"kueue.x-k8s.io/workload": "w", "team": "a"}
    built = build(proxy(source))
    assert built["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert not {"tolerations", "schedulingGates"} & built["spec"].keys()
    assert set(objects.labels(built)) == {
        keys.PREFIX + "app",
        keys.PARENT_UID,
        *PARENT.labels,
    }
    assert "kueue" not in str(objects.annotations(built))


def test_a_pod_that_another_scheduler_bound_is_sent_without_what_chose_the_virtual_node():
    term = {"matchExpressions": [{"key": keys.TARGET_NAME, "operator": "In", "values": ["c2"]}]}
    required = {"nodeSelectorTerms": [term]}
    pod = {
        "metadata": {"name": "x", "namespace": "shop", "uid": "u2"},
        "spec": {
            "containers": [{"name": "main"}],
            "nodeName": "admiralty-default-c2",
            "nodeSelector": {keys.PROVIDER_LABEL: keys.PROVIDER},
            "tolerations": [{"key": keys.PROVIDER_LABEL, "value": keys.PROVIDER}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            },
        },
    }
    assert build(pod, allowed=True)["spec"] == {"containers": [{"name": "main"}]}


def test_what_names_a_group_of_the_source_stays_there():
    source = source_with(schedulingGroup={"podGroupName": "train"})
    source["metadata"]["annotations"] = dict.fromkeys((*keys.VOLCANO_GROUPS, "team"), "train")
    source["metadata"]["labels"][keys.POD_GROUP] = "train"
    built = build(proxy(source))
    assert "schedulingGroup" not in built["spec"]
    assert objects.annotations(built)["team"] == "train"
    assert not set(keys.VOLCANO_GROUPS) & objects.annotations(built).keys()
    assert keys.POD_GROUP not in objects.labels(built)
