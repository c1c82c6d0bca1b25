"""Terms of pods are compiled once for all that are made alike, refused ones too."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduling.builders import pod
from vnode.api import pod_terms, selectors
from vnode.api.errors import ConfigError


def wanting(uid: str, namespace: str = "team-a", **whom: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "once"}}, **whom}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod(uid, namespace=namespace, affinity={"podAffinity": terms})


def test_pods_made_alike_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[object]()

    def counting(selector: Any) -> selectors.Selector | None:
        compiled.append(selector)
        return selectors.Selector()

    monkeypatch.setattr(selectors, "from_label_selector", counting)
    for number in range(10):
        pod_terms.required(wanting(f"p{number}"), pod_terms.AFFINITY)

    assert len(compiled) == 1
    pod_terms.required(wanting("p", "team-b"), pod_terms.AFFINITY)
    assert len(compiled) == 2, "a term is about the namespace of its pod"


def test_terms_that_are_refused_are_refused_each_time() -> None:
    bad = wanting("p", namespaceSelector={"matchLabels": {"team": "x"}})
    for _ in range(2):
        with pytest.raises(ConfigError, match="list the namespaces instead"):
            pod_terms.required(bad, pod_terms.AFFINITY)


@pytest.mark.parametrize(
    ("whom", "names"),
    [
        ({}, {"team-a"}),
        ({"namespaces": ["x", "y"]}, {"x", "y"}),
        ({"namespaceSelector": {}}, None),
    ],
)
def test_the_namespaces_of_terms_are_those_whose_pods_they_may_select(
    whom: dict[str, Any], names: set[str] | None
) -> None:
    assert pod_terms.namespaces(wanting("p", **whom)) == names
