"""Stores show what is assumed of objects beside what their API server has, and never for it."""

from __future__ import annotations

import copy
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import kinds, objects
from vnode.kube.client import Client
from vnode.kube.informer import Informer

KEY, ANNOTATIONS = "shop/web", ("a", "b")


class _Client:
    """As much of a client as an informer needs that does not run."""

    name = "c1"

    class scope:
        @staticmethod
        def places(_kind, namespace):
            return (namespace,)


class Watched:
    """An informer that is fed by hand, and what its subscribers were told."""

    def __init__(self):
        self.informer = Informer(cast(Client, _Client()), kinds.PODS)
        self.heard = []
        self.informer.subscribe(lambda *change: self.heard.append(copy.deepcopy(change)))
        self._version = 0

    def send(self, uid="u1", type_="MODIFIED", **annotations):
        self._version += 1
        metadata = {"namespace": "shop", "name": "web", "uid": uid}
        metadata |= {"resourceVersion": str(self._version), "annotations": annotations}
        self.informer.apply(type_, {"metadata": metadata})

    @property
    def shown(self):
        return dict(objects.annotations(self.informer.store.get(KEY) or {}))


def test_an_assumed_annotation_is_shown_and_told_like_one_that_was_written():
    watched = Watched()
    watched.send(a="1")
    watched.informer.assume(KEY, "u1", "b", "2")
    old, new = watched.heard[-1]
    assert (objects.annotations(old), objects.annotations(new)) == (
        {"a": "1"},
        {"a": "1", "b": "2"},
    )
    watched.informer.restore(KEY, "u1", "b")
    assert watched.shown == {"a": "1"}


def test_it_outlives_events_and_comes_before_its_object():
    watched = Watched()
    watched.informer.assume(KEY, "u1", "b", "2")
    assert not watched.heard
    watched.send(a="1")
    watched.send(a="3")
    assert watched.shown == {"a": "3", "b": "2"}


def test_a_namesake_has_nothing_of_it():
    watched = Watched()
    watched.send()
    watched.informer.assume(KEY, "u1", "b", "2")
    watched.send(uid="u2")
    assert watched.shown == {}
    assert not watched.informer.is_assumed("u1", "b")


def test_subscribers_see_it_on_an_object_that_goes():
    watched = Watched()
    watched.send()
    watched.informer.assume(KEY, "u1", "b", "2")
    watched.send(type_="DELETED")
    old, new = watched.heard[-1]
    assert objects.annotations(old) == {"b": "2"}
    assert new is None


def test_two_assumptions_are_taken_back_one_by_one():
    watched = Watched()
    watched.send()
    for annotation in ANNOTATIONS:
        watched.informer.assume(KEY, "u1", annotation, "2")

    watched.informer.restore(KEY, "u1", "a")
    assert watched.shown == {"b": "2"}
    watched.informer.restore(KEY, "u1", "b")
    assert watched.shown == {}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.dictionaries(st.sampled_from(ANNOTATIONS), st.just("real"))),
        st.tuples(st.sampled_from(("assume", "restore")), st.sampled_from(ANNOTATIONS)),
    ),
    max_size=12,
)


@given(STEPS)
def test_what_the_api_server_has_is_always_shown_as_it_is(steps):
    watched, real, assumed = Watched(), {}, set()
    watched.send()
    for step, what in steps:
        if step == "send":
            watched.send(**what)
            real = what
            assumed -= what.keys()
        elif step == "assume":
            watched.informer.assume(KEY, "u1", what, "assumed")
            assumed |= {what} - real.keys()
        else:
            watched.informer.restore(KEY, "u1", what)
            assumed.discard(what)

        assert watched.shown == {**dict.fromkeys(assumed, "assumed"), **real}
        assert {a for a in ANNOTATIONS if watched.informer.is_assumed("u1", a)} == assumed
