"""What is too much of a pod does not travel, and is not gone through."""

from __future__ import annotations

from typing import Any

import pytest

from tests.permitted import MANIFESTS
from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.pods import annotation_merge, changes, chaperons, delegate_report, travel_size
from vnode.pods.source import feedback

SOURCE = Identity("c1", "uid-of-c1")
MANY = {f"{number}": "" for number in range(travel_size.MOST + 1)}


def pod(labels: Any = None, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "web-0",
            "namespace": "shop",
            "uid": "u1",
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {"containers": [{"name": "main"}], **spec},
        "status": {},
    }


def send(proxy: dict[str, Any]) -> None:
    api = ("c1.example", "443")
    chaperons.build(
        proxy, SOURCE, "a/c2", manifests=MANIFESTS, allowed=True, finalizer=True, source_api=api
    )


def tokens(count: int) -> list[Any]:
    sources = [{"serviceAccountToken": {"path": f"{number}"}} for number in range(count)]
    return [{"name": "all", "projected": {"sources": sources}}]


def spread(count: int) -> list[Any]:
    return [{"topologyKey": f"{number}"} for number in range(count)]


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        (pod(labels=MANY), "has 5001 labels"),
        (pod(annotations=MANY), "has 5001 annotations"),
        (pod(topologySpreadConstraints=spread(10_000)), "over 10000 fields"),
        (pod(volumes=tokens(501)), "501 tokens"),
    ],
)
def test_a_pod_of_which_there_is_too_much_goes_nowhere(proxy: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        send(proxy)


def test_a_pod_within_the_bounds_goes() -> None:
    few = dict(list(MANY.items())[: travel_size.MOST])
    send(pod(few, few, topologySpreadConstraints=spread(900), volumes=tokens(500)))


@pytest.mark.parametrize("proxy", [pod(labels=MANY), pod(annotations=MANY)])
def test_changes_of_a_pod_with_too_many_are_refused(proxy: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="5001"):
        changes.is_news(proxy, pod(), SOURCE)


@pytest.mark.parametrize("two_way", [True, False])
def test_of_too_many_annotations_of_a_target_none_is_looked_at(
    two_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def look(key: str) -> bool:
        seen.append(key)
        return False

    monkeypatch.setattr(keys, "travels", look)
    monkeypatch.setattr(keys, "is_foreign", look)
    assert feedback.annotations_patch(pod(), pod(annotations=MANY), two_way=two_way) == {}
    assert not seen


def test_of_too_many_annotations_of_a_delegate_the_source_hears_nothing() -> None:
    had = pod(annotations={"theirs": "1"})
    assert delegate_report.build(had, pod(annotations=MANY)).metadata == {}


@pytest.mark.parametrize("value", ["[" + "[]," * 30_000 + "[]]", '"' + "x" * 262_144 + '"'])
def test_a_record_that_is_too_large_counts_as_none(value: str) -> None:
    noted = pod(annotations={keys.SENT: f'{{"annotations": {{"a": "b"}}, "x": {value}}}'})
    assert annotation_merge.read(noted, keys.SENT) == {}


def test_a_record_of_all_annotations_that_travel_is_read() -> None:
    few = dict(list(MANY.items())[: travel_size.MOST])
    noted = pod(annotations={keys.SENT: annotation_merge.text({"annotations": few})})
    assert annotation_merge.read(noted, keys.SENT) == {"annotations": few}


def test_of_tokens_that_a_target_says_a_delegate_has_too_many_are_none() -> None:
    assert chaperons.tokens_of(pod(annotations={keys.TOKEN: "b,a,,"})) == {"a", "b"}
    assert not chaperons.tokens_of(pod(annotations={keys.TOKEN: "a," * 20_000}))
