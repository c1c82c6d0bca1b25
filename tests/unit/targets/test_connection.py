from __future__ import annotations

from dataclasses import replace

import pytest

from vnode.api import identity, keys
from vnode.api.identity import Identity
from vnode.runtime.links import TargetKey
from vnode.targets import connection
from vnode.targets.model import SecretReference, TargetSpec

SPEC = TargetSpec(TargetKey("team", "c2"), SecretReference("team", "s", "config", ""), "")


def make_chaperon(**annotations):
    return {"metadata": {"namespace": "ns", "name": "web-x", "annotations": annotations}}


def test_the_fingerprint_stays_while_nothing_changes():
    assert connection.fingerprint(SPEC, b"x") == connection.fingerprint(replace(SPEC), b"x")


@pytest.mark.parametrize(
    ("spec", "kubeconfig"),
    [
        (SPEC, b"y"),
        (replace(SPEC, excluded_labels="^a"), b"x"),
        (replace(SPEC, secret=SecretReference("team", "s", "config", "other")), b"x"),
        (replace(SPEC, secret=None), b"x"),
    ],
)
def test_the_fingerprint_changes_with_all_that_a_connection_is_made_of(spec, kubeconfig):
    assert connection.fingerprint(spec, kubeconfig) != connection.fingerprint(SPEC, b"x")


def test_a_chaperon_tells_whose_it_is():
    told = make_chaperon(**{keys.PARENT_NAMESPACE: "ns", keys.PARENT_NAME: "web"})
    assert identity.parent_key(told) == "ns/web"
    assert identity.parent_key(make_chaperon()) == "ns/web-x"


def test_a_chaperon_is_ours_unless_it_says_otherwise():
    identity = Identity("c1", "our-uid")
    assert identity.owns(make_chaperon(**{keys.PARENT_CLUSTER_UID: "our-uid"}))
    assert identity.owns(make_chaperon())
    assert not identity.owns(make_chaperon(**{keys.PARENT_CLUSTER_UID: "another"}))
