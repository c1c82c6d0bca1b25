"""`kubectl wait` on the conditions of kinds that people write, true or not.

It goes by the condition's observedGeneration as well, so that an agent has to move that on. Sets
are waited for in test_target_sets.py, followed decisions in test_decisions.py, Rebalances in
test_moves.py, published decisions and AuthTokenRequests in tests/faults.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest
import yaml

from tests import kit
from tests.kit import Fleet
from vnode.api import kinds
from vnode.kube.client import Client

OBJECTS: Final = """
apiVersion: vnode.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: waited, namespace: default}
spec:
  selector: {matchLabels: {app: waited}}
  mode: Spread
  targets: [{cluster: c2}, {cluster: c3}]
---
apiVersion: vnode.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: lacking, namespace: default}
spec: {selector: {matchLabels: {app: lacking}}, mode: Spread, targets: [{cluster: nowhere}]}
---
apiVersion: vnode.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata: {name: waited}
spec: {selector: {matchLabels: {app: elsewhere}}, mode: Single}
---
apiVersion: vnode.dev/v1alpha1
kind: OverridePolicy
metadata: {name: waited, namespace: default}
spec: {selector: {matchLabels: {app: waited}}, rules: [{labels: {one: "1"}}]}
---
apiVersion: vnode.dev/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: waited}
spec: {selector: {matchLabels: {app: waited}}, rules: [{labels: {two: "2"}}]}
---
apiVersion: multicluster.admiralty.io/v1alpha1
kind: ClusterTarget
metadata: {name: waited, annotations: {vnode.dev/node-pools: "{"}}
spec: {self: true}
---
apiVersion: multicluster.admiralty.io/v1alpha1
kind: ClusterTarget
metadata: {name: without-secret}
spec: {kubeconfigSecret: {namespace: default, name: without-secret}}
"""
SOURCE_OF_NOBODY: Final = """
apiVersion: multicluster.admiralty.io/v1alpha1
kind: ClusterSource
metadata: {name: waited}
spec: {userName: nobody}
"""
IN_THE_SOURCE: Final = {
    "target/c2": ("Ready", "Connected", "CredentialsLast", "Agent"),
    "clustertarget/waited": (
        *("Ready", "Connected", "Agent"),
        *("SelfTargetAllowed=False", "NodePoolsValid=False"),
    ),
    "clustertarget/without-secret": ("Ready=False", "Connected=False"),
    "placementpolicy/waited": ("Ready", "Accepted"),
    "placementpolicy/lacking": ("Ready=False", "Accepted=False"),
    "clusterplacementpolicy/waited": ("Ready", "Accepted"),
    "overridepolicy/waited": ("Ready", "Accepted", "Applicable"),
    "clusteroverridepolicy/waited": ("Ready", "Accepted", "Applicable"),
    "pod/waited": ("Ready", "PodScheduled", "Initialized", "ContainersReady"),
}
IN_THE_TARGET: Final = {
    "source/c1": ("Ready",),
    "clustersource/waited": ("Ready",),
    "podchaperons --all": ("Ready", "PodScheduled"),
}


@pytest.fixture
async def made(fleet: Fleet, source: Client) -> AsyncIterator[None]:
    """Have an object of each kind that people write, and a pod that runs."""
    await source.create(kinds.PODS, kit.pod_in("c2", "waited"), "default")
    for cluster, made in (("c1", OBJECTS), ("c2", SOURCE_OF_NOBODY)):
        fleet.kubectl(cluster, "apply", "--filename=-", input=made)

    yield
    for cluster, made in (("c1", OBJECTS), ("c2", SOURCE_OF_NOBODY)):
        fleet.kubectl(cluster, "delete", "--filename=-", input=made)


@pytest.mark.usefixtures("made")
def test_kubectl_waits_for_conditions_of_each_kind(fleet: Fleet) -> None:
    for cluster, expected in (("c1", IN_THE_SOURCE), ("c2", IN_THE_TARGET)):
        for what, conditions in expected.items():
            fleet.wait(cluster, what, *conditions)


@pytest.mark.usefixtures("made")
def test_a_condition_of_an_earlier_generation_is_waited_for(fleet: Fleet) -> None:
    fleet.wait("c1", "placementpolicy/waited", "Ready")
    policy = next(each for each in yaml.safe_load_all(OBJECTS) if each)
    policy["spec"]["targets"] = [{"cluster": "nowhere"}]
    fleet.kubectl("c1", "apply", "--filename=-", input=yaml.safe_dump(policy))
    fleet.wait("c1", "placementpolicy/waited", "Ready=False")
