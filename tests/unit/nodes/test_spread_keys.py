"""Over which keys pods are spread: of one pod few count."""

from __future__ import annotations

from vnode.api import node_labels


def test_of_a_pod_with_thousands_of_constraints_a_hundred_keys_count() -> None:
    constraints = [
        {"topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule"}
        for number in range(10_000)
    ]
    assert len(node_labels.spread_keys({"spec": {"topologySpreadConstraints": constraints}})) == 100
