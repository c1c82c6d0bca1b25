"""Labels as a target has them, and what is said of those that it cannot all have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, renaming

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

    own = renaming.travelling(labels)
    there = renaming.renamed(own, renaming.kept_labels("|".join(kept)))
    assert set(there.values()) == set(own.values())
    for key, value in own.items():
        assert there.get(key, there.get(keys.PREFIX + key.rpartition("/")[2])) == value
