"""Labels as a target has them, and what is said of those that it cannot all have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, renaming
from vnode.api.errors import ConfigError

_labels = st.dictionaries(
    st.sampled_from(["app", "x/app", "y.z/app", "tier", "kueue.x-k8s.io/tier"]),
    st.sampled_from(["", "a", "b"]),
)


def pod(labels, regexp=""):
    return {"metadata": {"labels": labels, "annotations": {keys.NO_PREFIX_LABEL_REGEXP: regexp}}}


def test_labels_that_become_one_are_told_with_the_cure():
    labels = {"app.kubernetes.io/name": "shop", "name": "other"}
    (text,) = renaming.warnings(pod(labels))
    assert text == (
        "labels app.kubernetes.io/name and name are both multicluster.admiralty.io/name in a "
        "target, which has only the value of the second: set annotation "
        r"multicluster.admiralty.io/no-prefix-label-regexp: '^app\.kubernetes\.io/name='"
    )
    assert not list(renaming.warnings(pod(labels, r"^app\.kubernetes\.io/name=")))
    assert not list(renaming.warnings(pod({"x/name": "same", "name": "same"})))


@given(_labels)
def test_whoever_does_as_told_loses_no_label(labels):
    kept: list[str] = []
    for _ in labels:
        cures = [text.split("'")[1] for text in renaming.warnings(pod(labels, "|".join(kept)))]
        if not cures:
            break

        kept.append(cures[0])

    keep = renaming.kept_labels("|".join(kept))
    own = renaming.travelling(labels, keep)
    there = renaming.renamed(own, keep)
    assert set(there.values()) == set(own.values())
    for key, value in own.items():
        assert there.get(key, there.get(keys.PREFIX + key.rpartition("/")[2])) == value


@pytest.mark.parametrize("key", ["kueue.x-k8s.io/queue-name", "tas.kueue.x-k8s.io/x"])
def test_labels_of_a_queue_go_only_where_the_annotation_names_them(key):
    labels = {key: "team", "app": "a"}
    for regexp, delegate_labels in (
        ("", {keys.PREFIX + "app": "a"}),
        ("^app=", {"app": "a"}),
        (f"^{key}=", {key: "team", keys.PREFIX + "app": "a"}),
        (f"^{key}=other", {keys.PREFIX + "app": "a"}),
    ):
        keep = renaming.kept_labels(regexp)
        assert renaming.renamed(renaming.travelling(labels, keep), keep) == delegate_labels


def test_many_labels_are_not_matched_at_each_look():
    most = {f"l{n}": "" for n in range(renaming.MOST_MATCHED)}
    assert renaming.kept_labels_of(pod(most, "^l1="))
    more = {**most, "one-more": ""}
    assert renaming.kept_labels_of(pod(more)) is None
    with pytest.raises(ConfigError, match="the pod has 101 labels: use 100 at most with it"):
        renaming.kept_labels_of(pod(more, "^l1="))


def test_an_expression_that_is_costly_for_the_pods_labels_is_refused():
    """Each of 99 labels took 1.7 ms, at each look at the pod."""
    labels = {("ab" * 120) + f"/{n}": "ab" * 30 for n in range(99)}
    with pytest.raises(ConfigError, match="too large for the pod's labels of 30"):
        renaming.kept_labels_of(pod(labels, "(?:.*(?:ab|ba)){60}"))

    assert renaming.kept_labels_of(pod(labels, "^example.com/queue="))
    assert renaming.kept_labels_of(pod({"app": "web"}, "(?:.*(?:ab|ba)){60}"))


def test_nor_are_many_values_of_selectors():
    def affine(count):
        values = [f"v{n}" for n in range(count)]
        expression = {"key": "a", "operator": "In", "values": values}
        term = {"topologyKey": "x", "labelSelector": {"matchExpressions": [expression]}}
        listed = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {**pod({}, "^l1="), "spec": {"affinity": {"podAffinity": listed}}}

    assert renaming.kept_labels_of(affine(900))
    with pytest.raises(ConfigError, match="have over 1000 values"):
        renaming.kept_labels_of(affine(1000))


def test_of_thousands_of_labels_that_meet_a_few_are_told():
    labels = {f"{n}.example.com/a": str(n) for n in range(1000)}
    assert len(list(renaming.warnings(pod(labels)))) == renaming.MOST_WARNINGS
