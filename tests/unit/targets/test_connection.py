from __future__ import annotations

from vnode.api import identity, keys
from vnode.api.identity import Identity


def make_chaperon(**annotations):
    return {"metadata": {"namespace": "ns", "name": "web-x", "annotations": annotations}}


def test_a_chaperon_tells_whose_it_is():
    chaperon = make_chaperon(**{keys.PARENT_NAMESPACE: "ns", keys.PARENT_NAME: "web"})
    assert identity.parent_key(chaperon) == "ns/web"
    assert identity.parent_key(make_chaperon()) == "ns/web-x"


def test_a_chaperon_is_ours_unless_it_says_otherwise():
    identity = Identity("c1", "our-uid")
    assert identity.owns(make_chaperon(**{keys.PARENT_CLUSTER_UID: "our-uid"}))
    assert identity.owns(make_chaperon())
    assert not identity.owns(make_chaperon(**{keys.PARENT_CLUSTER_UID: "another"}))
