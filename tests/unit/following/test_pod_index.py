"""Which pods a Service selects is told by an index of their labels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests import computing
from vnode.api.objects import Object
from vnode.following.pod_index import PodIndex


def pod(name: str, labels: dict[str, str]) -> Object:
    return {"metadata": {"name": name, "namespace": "ns", "labels": labels}, "status": {}}


def index_of(*pods: dict[str, str]) -> PodIndex:
    index = PodIndex()
    for number, labels in enumerate(pods):
        index.on_pod(None, pod(f"p{number}", labels))

    return index


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(st.lists(LABELS, max_size=6), LABELS)
def test_a_selector_selects_pods_that_have_all_its_labels(
    pods: list[dict[str, str]], selector: dict[str, str]
) -> None:
    selected = any(selector.items() <= labels.items() for labels in pods)
    assert index_of(*pods).has("ns", selector) is (selected and bool(selector))


def test_an_ingress_of_services_whose_labels_no_pod_has_together_is_soon_looked_at() -> None:
    """Thousands of pods have each of them, and an Ingress has hundreds of backends."""
    halves = [{"a": "1", ("b" if number % 2 else "c"): "1"} for number in range(4_000)]
    index = index_of(*halves)
    with computing.within(0.15):
        for _ in range(500):
            assert not index.has("ns", {"a": "1", "b": "1", "c": "1"})
