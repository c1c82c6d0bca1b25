from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, names

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?", fullmatch=True)
targets = st.tuples(st.one_of(st.just(""), labels), labels)


@pytest.mark.parametrize(
    ("namespace", "name", "node", "finalizer"),
    [
        ("default", "c2", "admiralty-default-c2", "default-c2"),
        (
            "default",
            "us-east",
            "admiralty-default-us-east-ee9ead5002",
            "default-us-east-38e7f476ad",
        ),
        ("team-a", "c2", "admiralty-team-a-c2-d2b2a8a1b2", "team-a-c2-0ba4508354"),
        ("", "c2", "admiralty-c2", "c2"),
        ("", "us-east", "admiralty-us-east-0d5a6e86f1", "us-east-d915dd7b27"),
    ],
)
def test_nodes_and_finalizers_are_named_as_admiralty_names_them(namespace, name, node, finalizer):
    assert names.virtual_node(namespace, name) == node
    assert names.finalizer(namespace, name) == keys.PREFIX + finalizer


def test_a_node_seen_in_the_field_gets_its_name():
    found = names.virtual_node("plm-c7ff8eb6", "target-cluster")
    assert found == "admiralty-plm-c7ff8eb6-target-cluster-3e3933bad4"


@pytest.mark.parametrize(
    ("optional", "parts", "expected"),
    [
        (set(), ("default", "foo-bar"), "default-foo-bar-b1f5f88a38"),
        (set(), ("default-foo", "bar"), "default-foo-bar-ce0b03a405"),
        ({0, 1}, ("foo", ""), "foo-14fe48f0fb"),
        ({0, 1}, ("", "foo"), "foo-6f64c6e626"),
    ],
)
def test_ambiguous_parts_get_the_hash_of_all_parts(optional, parts, expected):
    assert names.from_parts(253, frozenset(), frozenset(optional), *parts) == expected


def test_bindings_of_sources_are_named_as_admiralty_names_them():
    assert names.cluster_source_binding("c1") == "admiralty-cluster-source-c1"
    assert names.cluster_source_viewer_binding("c1") == (
        "admiralty-cluster-source-c1-cluster-summary-viewer"
    )
    assert names.cluster_source_binding("c1-cluster-summary-viewer") == (
        "admiralty-cluster-source-c1-cluster-summary-viewer-32abdad0d4"
    )
    assert names.source_binding("cluster-1") == "admiralty-source-cluster-1"
    assert names.source_viewer_binding("default", "c1") == (
        "admiralty-source-default-c1-cluster-summary-viewer"
    )
    assert names.source_viewer_binding("team-a", "cluster1").endswith("-viewer-0c63aba1e9")


@given(targets, targets)
def test_different_targets_never_share_a_node_or_a_finalizer(one, other):
    if one != other:
        assert names.virtual_node(*one) != names.virtual_node(*other)
        assert names.finalizer(*one) != names.finalizer(*other)


WORDS = ("a", "b", "summary", "cluster-summary-viewer")
LONGER = [*WORDS, *("-".join(pair) for pair in itertools.product(WORDS, repeat=2))]
PAIRS = [*itertools.product(LONGER, repeat=2)]
NAMED: dict[str, list[tuple[Callable[..., str], Sequence[tuple[str, ...]]]]] = {
    "Node": [(names.virtual_node, [*PAIRS, *(("", name) for name in LONGER)])],
    "finalizer": [(names.finalizer, [*PAIRS, *(("", name) for name in LONGER)])],
    "MultiKueueCluster": [(names.multikueue_cluster, [*PAIRS, *(("", name) for name in LONGER)])],
    "ClusterRoleBinding": [
        (names.cluster_source_binding, [(name,) for name in LONGER]),
        (names.cluster_source_viewer_binding, [(name,) for name in LONGER]),
        (names.source_viewer_binding, PAIRS),
    ],
    "RoleBinding": [
        (names.cluster_source_binding, [(name,) for name in LONGER]),
        (names.source_binding, [(name,) for name in LONGER]),
    ],
}
"""What names objects of one kind, with names of which one is like the end or the sum of others."""


@pytest.mark.parametrize("kind", NAMED)
def test_no_two_objects_of_a_kind_have_one_name(kind):
    made = [(name(*parts), name, parts) for name, all_ in NAMED[kind] for parts in all_]
    found = Counter(name for name, *_ in made)
    assert [each for each in made if found[each[0]] > 1] == []


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True), labels)
def test_names_are_valid_and_within_their_limits(namespace, name):
    node = names.virtual_node(namespace, name)
    finalizer = names.finalizer(namespace, name).removeprefix(keys.PREFIX)
    assert len(node) <= names.NAME_LIMIT
    assert LABEL.fullmatch(node)
    assert len(finalizer) <= names.LABEL_LIMIT
    assert LABEL.fullmatch(finalizer)


@given(labels, st.uuids().map(str))
def test_a_chaperon_is_named_after_its_pod_and_the_same_each_time(pod, uid):
    name = names.chaperon(pod, uid)
    assert name == names.chaperon(pod, uid)
    assert name.startswith(f"{pod}-")
    assert LABEL.fullmatch(name)


def test_a_long_pod_name_leaves_room_for_the_suffix():
    one, other = names.chaperon("x" * 200, "uid-1"), names.chaperon("x" * 200, "uid-2")
    assert len(one) == names.LABEL_LIMIT
    assert one != other


def test_pods_of_one_owner_whose_names_are_cut_have_chaperons_of_different_names():
    for base in ("x" * 57, "x" * 60, "a." * 40, "x" * 52 + "-", "x" * 51 + "-.", "x" * 240):
        made = {names.chaperon(f"{base}{n:05}", f"uid-{n}") for n in range(20_000)}
        assert len(made) == 20_000
        assert all(len(name) <= names.LABEL_LIMIT for name in made)
        assert all(names.SUBDOMAIN.fullmatch(name) for name in made)


def test_a_chaperon_that_an_earlier_version_named_is_still_its_pods():
    pod = "x" * 60
    former = "x" * 58 + names.chaperon("x", "uid-1").removeprefix("x-")
    assert former != names.chaperon(pod, "uid-1")
    assert names.chaperons(pod, "uid-1") == (names.chaperon(pod, "uid-1"), former)
    assert former not in names.chaperons(pod, "uid-2")
    assert names.chaperons("web", "uid-1") == (names.chaperon("web", "uid-1"),)
    assert all(names.may_be_own_chaperon(n, pod) for n in names.chaperons(pod, "uid-1"))
    assert not names.may_be_own_chaperon(names.chaperon("y" * 60, "uid-1"), pod)
    assert names.former_token_secret(pod, "uid-1") == f"{former}-token"
    assert names.former_token_secret("web", "u") == names.token_secret("web", "u")


@given(st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_every_virtual_node_is_known_by_its_name(namespace, name):
    assert names.may_be_virtual_node(names.virtual_node(namespace, name))
    assert not names.may_be_virtual_node("ip-10-0-0-1.ec2.internal")
