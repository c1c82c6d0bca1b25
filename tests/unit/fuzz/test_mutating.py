"""Mutations: the same of the same seed, other than the sample, and not all of them nonsense."""

from __future__ import annotations

import gzip
import json
import random

import msgspec

from tests.fuzz import canary, chaperons, typed
from tests.fuzz.mutating import Mutator, bomb
from vnode.api import shapes

SAMPLE = {"a": [1, "b", {"c": True, "d": None}], "e": {"f": "g"}, "h": 1.5}
COUNT = 200


def mutators():
    """Yield a mutator for each of `COUNT` seeds."""
    return (Mutator(random.Random(seed)) for seed in range(COUNT))


def test_a_seed_gives_the_same_input_and_leaves_the_sample_alone():
    before = json.dumps(SAMPLE)
    made = [[mutator.payload(SAMPLE) for mutator in mutators()] for _again in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > COUNT / 2
    assert json.dumps(SAMPLE) == before


def test_some_inputs_can_be_decoded_and_others_cannot():
    decoded = 0
    for mutator in mutators():
        try:
            msgspec.json.decode(mutator.payload(SAMPLE))
            decoded += 1
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            pass

    assert COUNT / 4 < decoded < COUNT


def test_what_is_not_wild_keeps_its_types():
    for mutator in mutators():
        assert typed.fits(typed.SPEC, mutator.value(typed.SPEC, wild=False))


def test_some_chaperons_have_the_spec_of_a_pod_and_others_have_not():
    made = [chaperons.mutated(random.Random(seed), "a", "b") for seed in range(COUNT)]
    pods = sum(typed.is_pod(chaperon) for chaperon in made)
    assert COUNT / 10 < pods < COUNT
    stored = {"uid": "1", "resourceVersion": "1"}
    accepted = [shapes.is_chaperon({**c, "metadata": {**c["metadata"], **stored}}) for c in made]
    assert any(accepted)


def test_the_sample_of_a_pod_is_one():
    assert typed.is_pod(canary.pod("a", "b"))
    assert typed.is_pod({"metadata": {}, "spec": typed.SPEC})
    assert not typed.is_pod({"metadata": {}, "spec": {**typed.SPEC, "nodeName": 5}})


def test_a_bomb_is_small_until_it_is_unfolded():
    packed = bomb(1 << 20)
    assert len(packed) < 10_000
    assert len(gzip.decompress(packed)) > 1 << 20
