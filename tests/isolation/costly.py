"""Builds objects that are small, allowed, and cost an agent as much as they can. Pure."""

from __future__ import annotations

from typing import Final

from tests import kit, placement_policies
from vnode.api import keys
from vnode.api.objects import Object

_ENTRIES: Final = 2400  # of a YAML flow map: 26 kB
_TERMS: Final = 32  # of a pod's own anti-affinity
_LABELS: Final = 99
_LABEL: Final = 40  # characters of a label's value


def yaml_pod(name: str) -> Object:
    """Return a pod whose constraints are YAML of many small values, none of which is a field."""
    text = "{" + ", ".join(f"a{n}: [x]" for n in range(_ENTRIES)) + "}"
    return kit.pod(name, annotations={keys.ELECT: "", keys.PROXY_CONSTRAINTS: text})


def labelled_pod(number: int) -> Object:
    """Return a pod for which all but one expression of each costly policy hold."""
    pod = kit.pod(f"planned-{number}")
    pod["metadata"]["labels"] = placement_policies.costly_labels(number)
    return pod


def stuck_pod(name: str) -> Object:
    """Return a pod with no place: nobody is what it wants beside it, and it has many terms."""
    wanted = [_term({"nobody": "is-this"})]
    unwanted = [_term({"unwanted": f"kind-{n}"}) for n in range(_TERMS)]
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": unwanted},
    }
    return kit.pod(name, affinity=affinity)


def selecting_pod(name: str) -> Object:
    """Return a pod with many terms about pods of all namespaces, as no other pod's are.

    They keep off those without a label `app`, of which there are none: who keeps off all others
    locks a node by the rules of Kubernetes, and then nobody would be measured.
    """

    def term(number: int) -> Object:
        values = [f"{name}-{number}-{n}" for n in range(8)]
        expressions = [{"key": f"k{n}", "operator": "NotIn", "values": values} for n in range(2)]
        expressions.append({"key": "app", "operator": "DoesNotExist"})
        return {
            "labelSelector": {"matchExpressions": expressions},
            "namespaceSelector": {},
            "topologyKey": "kubernetes.io/hostname",
        }

    terms = [term(number) for number in range(_TERMS)]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return kit.pod(name, affinity=affinity)


def locking_pod(name: str, target: str) -> Object:
    """Return a pod for one target that wants no other pod beside it, of whatever namespace."""
    term = {
        "labelSelector": {},
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    constraints = f"nodeSelector: {{{keys.CLUSTER_TARGET_NAME}: {target}}}"
    annotations = {keys.ELECT: "", keys.PROXY_CONSTRAINTS: constraints}
    return kit.pod(name, annotations=annotations, affinity=affinity)


def many_labels_pod(name: str) -> Object:
    """Return a pod with many labels, and an expression on them that has many branches."""
    expression = "(?:.*(?:ab|ba)){60}"
    pod = kit.pod(name, annotations={keys.ELECT: "", keys.NO_PREFIX_LABEL_REGEXP: expression})
    pod["metadata"]["labels"] = {
        f"example.com/{'label' * 10}-{n}": ("ab" * _LABEL)[:_LABEL] for n in range(_LABELS)
    }
    return pod


def _term(labels: dict[str, str]) -> Object:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
