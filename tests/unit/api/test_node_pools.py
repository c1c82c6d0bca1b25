"""Node pools that may grow, as the annotation of a Target names them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vnode.api import node_pools, shape
from vnode.api.errors import ConfigError
from vnode.api.node_pools import NodePool
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape

GPU, MODEL = "nvidia.com/gpu", "nvidia.com/gpu.product"
A100 = {"labels": {MODEL: "A100"}, "allocatable": {GPU: 8, "cpu": "96"}, "min": 0, "max": 4}


def parsed(*pools: Any) -> tuple[NodePool, ...]:
    return node_pools.parse(json.dumps(pools))


def wanted(gpus: int, model: str = "", cpu: int = 1000, others: int = 0) -> Shape:
    selector = {MODEL: model} if model else {}
    requests = {"cpu": cpu, "pods": 1, "memory": 1, GPU: gpus, "amd.com/gpu": others}
    return shape.of_spec(requests, {"nodeSelector": {**selector, "unknown": "label"}})


def told(*models: tuple[str, int]) -> Rows:
    row = {GPU: 0}
    alike = tuple(
        AlikeNodes({MODEL: model}, (), (RowOfNodes(count, row, row),)) for model, count in models
    )
    nodes = sum(count for _, count in models)
    return Rows((MODEL,), frozenset({GPU}), alike, nodes, True)


def test_a_pool_holds_what_its_nodes_have() -> None:
    [pool] = parsed(A100)
    assert pool == NodePool({MODEL: "A100"}, {GPU: 8, "cpu": 96_000}, 4)
    assert pool.may_hold(wanted(8))
    assert pool.may_hold(wanted(8, "A100"))
    assert not pool.may_hold(wanted(8, "T4"))
    assert not pool.may_hold(wanted(9))
    assert not pool.may_hold(wanted(8, cpu=97_000))
    assert not pool.may_hold(wanted(8, others=1))


def test_yaml_will_do() -> None:
    assert node_pools.parse("- {allocatable: {cpu: 4}, max: 2}") == (
        NodePool({}, {"cpu": 4000}, 2),
    )
    assert node_pools.parse("") == ()


def test_a_pool_may_grow_by_the_nodes_that_it_lacks() -> None:
    pools = parsed(A100)
    [pool] = pools
    assert pool.left(pools, told(("A100", 3), ("T4", 9))) == 1
    assert pool.left(pools, told(("A100", 4))) == 0
    assert pool.left(pools, told()) == 4
    assert pool.left(pools, None) == 4
    assert node_pools.may_grow(pools, told(("A100", 3)), wanted(8))
    assert not node_pools.may_grow(pools, told(("A100", 4)), wanted(8))


def test_pools_that_rows_do_not_tell_apart_have_nodes_together() -> None:
    spot = {**A100, "labels": {MODEL: "A100", "spot": "true"}, "max": 2}
    pools = parsed(A100, spot)
    assert [pool.left(pools, told(("A100", 3))) for pool in pools] == [3, 2]
    assert [pool.left(pools, told(("A100", 5))) for pool in pools] == [1, 1]
    unnamed = parsed({**A100, "labels": {"pool": "x"}})
    assert unnamed[0].left(unnamed, told(("A100", 9))) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "is neither JSON nor YAML"),
        ("{}", "is no list of at most 32 pools"),
        (json.dumps([A100] * 33), "is no list of at most 32 pools"),
        (" " * 20_000 + "x", "has more than 16384 characters"),
        (json.dumps([{**A100, "size": 3}]), 'unknown field "size"; known are: allocatable, max'),
        (json.dumps([{"max": 3}]), "missing required field `allocatable`"),
        (json.dumps([{**A100, "max": 0}]), "max must be from 1 to 100000"),
        (json.dumps([{**A100, "min": 5}]), "they are 4 and 5"),
        (json.dumps([{**A100, "max": "x"}]), "Expected `int`, got `str`"),
        (json.dumps([{**A100, "labels": {"a b": "c"}}]), "a b=c is no label of a node"),
        (json.dumps([{**A100, "allocatable": {GPU: "many"}}]), "pools[0].allocatable: "),
        (json.dumps([{**A100, "allocatable": {GPU: -1}}]), "say what one of its nodes has"),
        (json.dumps([{**A100, "allocatable": {}}]), "say what one of its nodes has"),
        (json.dumps([{**A100, "allocatable": {"a b": 1}}]), "'a b' is no name of a resource"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node_pools.parse(text)

    assert str(caught.value).startswith("annotation vnode.dev/node-pools")
    assert message in str(caught.value)
