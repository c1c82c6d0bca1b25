"""What an inventory says of a cluster becomes labels that select, and loses nothing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import names, objects
from vnode.nodes import labelling
from vnode.targets.profiles import describing


def profile(properties: dict[str, str], **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "fleet", "name": "c2", "labels": labels},
        "spec": {"displayName": "Cluster two ✓", "clusterManager": {"name": "tests"}},
        "status": {
            "version": {"kubernetes": "v1.36.3"},
            "properties": [{"name": n, "value": v} for n, v in properties.items()],
        },
    }


def test_a_profile_is_seen_on_the_virtual_node():
    found = describing.describe(
        profile(
            {
                "location": "eu-west",
                "clusterset.k8s.io": "production",
                "example.com/gpus": "8",
                "memory": "64Gi",
                "load": "1500m",
                "note": "two words",
            },
            team="blue",
        ),
        {},
    )
    assert found.labels == {
        "team": "blue",
        "vnode.dev/cluster-manager": "tests",
        "vnode.dev/cluster-version": "v1.36.3",
        "vnode.dev/clusterset": "production",
        "vnode.dev/property.location": "eu-west",
        "vnode.dev/property.clusterset.k8s.io": "production",
        "vnode.dev/property.example.com_gpus": "8",
        "vnode.dev/quantity.example.com_gpus": "8",
        "vnode.dev/property.memory": "64Gi",
        "vnode.dev/quantity.memory": str(64 * 2**30),
        "vnode.dev/property.load": "1500m",
        "vnode.dev/quantity.load": "1",
    }
    assert found.annotations["vnode.dev/cluster-profile"] == "fleet/c2"
    assert found.annotations["vnode.dev/cluster-display-name"] == "Cluster two ✓"
    assert json.loads(found.annotations["vnode.dev/cluster-properties"])["note"] == "two words"


def test_the_set_may_be_a_label_of_the_profile_or_of_its_namespace():
    key = "multicluster.x-k8s.io/clusterset"
    found = describing.describe(profile({}, **{key: "own"}), {key: "shared"})
    assert found.labels["vnode.dev/clusterset"] == "own"
    older = {"clusterset.multicluster.x-k8s.io": "shared"}
    assert describing.describe(profile({}), older).labels["vnode.dev/clusterset"] == "shared"


def test_an_inventory_does_not_say_what_a_node_is_nor_takes_our_words():
    labels = {
        "kubernetes.io/arch": "arm64",
        "node-restriction.kubernetes.io/a": "b",
        "vnode.dev/property.gpus": "9",
        "multicluster.admiralty.io/cluster-target-name": "other",
        "example.com/env": "prod",
    }
    found = describing.describe(profile({}, **labels), {})
    assert {key for key in found.labels if key in labels} == {"example.com/env"}


def test_labels_of_the_target_give_way_and_excluded_ones_stay_hidden():
    inventory = {"env": "prod", "secret": "x", "type": "other"}
    found = labelling.of_target(
        {"env": "claimed", "zone": "a"}, lambda text: "secret" in text, inventory
    )
    assert found["env"] == "prod"
    assert found["zone"] == "a"
    assert "secret" not in found


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=253), st.text(min_size=1, max_size=90), max_size=90
    ),
    st.dictionaries(st.text(max_size=80), st.text(max_size=63), max_size=5),
)
def test_whatever_it_says_labels_are_valid_and_bounded(properties, labels):
    made = profile(properties)
    made["metadata"]["labels"] = labels
    own = describing.describe(made, {}).labels.keys() - labels.keys()
    found = describing.describe(made, {}).labels
    assert len(found) <= 3 * describing.MOST + 3
    for key in own:
        assert names.QUALIFIED_NAME.fullmatch(key)
        assert names.LABEL_VALUE.fullmatch(found[key])


def test_malformed_lists_are_no_error():
    for properties in (None, {}, "x", [None, {}, {"name": "a"}, {"name": 1, "value": 2}]):
        made = profile({})
        made["status"] = {"properties": properties, "version": "v1"}
        assert objects.key(made) in describing.describe(made, {}).annotations.values()
