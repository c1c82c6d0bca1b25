"""What all nodes of a target declare, on its way to a virtual node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import node_features
from vnode.api.node_features import NodeFeatures
from vnode.api.objects import Object

RESIZE = "InPlacePodLevelResourcesVerticalScaling"
RESTART = "RestartAllContainersOnContainerExits"


def node(*declared: str, features: Any = None, handlers: Any = None) -> Object:
    status: Object = {"declaredFeatures": list(declared)}
    if features is not None:
        status["features"] = features

    if handlers is not None:
        status["runtimeHandlers"] = handlers

    return {"metadata": {"name": "n"}, "status": status}


def handler(name: str, **features: bool) -> Object:
    return {"name": name, "features": features}


def sent(*nodes: Object) -> Object:
    """Return what a source makes of it, by way of the annotation."""
    found = node_features.common(nodes)
    return node_features.decode(node_features.encode(found)).status()


def test_what_all_nodes_declare_is_declared() -> None:
    assert sent(node(RESTART, RESIZE), node(RESIZE)) == {"declaredFeatures": [RESIZE]}
    assert sent(node(RESIZE), {"status": {}}) == {}
    assert sent() == {}


def test_features_and_runtime_handlers_are_those_of_all_nodes() -> None:
    one = node(
        features={"supplementalGroupsPolicy": True},
        handlers=[handler("", userNamespaces=True, recursiveReadOnlyMounts=True), handler("kata")],
    )
    other = node(
        features={"supplementalGroupsPolicy": True, "later": True},
        handlers=[handler("", userNamespaces=False, recursiveReadOnlyMounts=True), handler("gv")],
    )
    assert sent(one, other) == {
        "features": {"supplementalGroupsPolicy": True},
        "runtimeHandlers": [{"name": "", "features": {"recursiveReadOnlyMounts": True}}],
    }


def test_nodes_that_declare_nothing_cost_no_annotation() -> None:
    assert node_features.encode(node_features.common([{"status": {}}])) == ""


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "[",
        "[]",
        '{"declaredFeatures": 1}',
        '{"declaredFeatures": ["' + "x" * 20000 + '"]}',
        '{"runtimeHandlers": {"a": {"b": 3}}}',
    ],
)
def test_what_makes_no_sense_is_nothing(text: object) -> None:
    assert node_features.decode(text) == node_features.NONE


def test_names_that_an_api_server_might_refuse_are_left_out() -> None:
    text = '{"declaredFeatures": ["A\\n", "-", "Good"], "runtimeHandlers": {"../x": {}, "ok": {}}}'
    assert node_features.decode(text).status() == {
        "declaredFeatures": ["Good"],
        "runtimeHandlers": [{"name": "ok"}],
    }


def handler_of(name: str, features: dict[str, bool]) -> Object:
    return {"name": name, "features": features}


NAMES = st.sampled_from("ABCDE")
STATUSES: st.SearchStrategy[Object] = st.fixed_dictionaries(
    {},
    optional={
        "declaredFeatures": st.lists(NAMES),
        "features": st.dictionaries(NAMES, st.booleans()),
        "runtimeHandlers": st.lists(
            st.builds(
                handler_of,
                st.sampled_from(["", "a", "b"]),
                st.dictionaries(NAMES, st.booleans()),
            ),
            unique_by=lambda each: str(each["name"]),
        ),
    },
)


@given(st.lists(STATUSES, min_size=1, max_size=4))
def test_nothing_is_declared_that_a_node_lacks_nor_left_out_that_all_have(
    statuses: list[Object],
) -> None:
    found = sent(*({"status": each} for each in statuses))
    every = set.intersection(*(set(each.get("declaredFeatures") or ()) for each in statuses))
    assert set(found.get("declaredFeatures", ())) == every
    for each in statuses:
        handlers = {h["name"]: h["features"] for h in each.get("runtimeHandlers") or ()}
        assert all((each.get("features") or {})[k] for k in found.get("features", ()))
        for common in found.get("runtimeHandlers", ()):
            assert all(handlers[common["name"]][k] for k in common.get("features", ()))


def test_a_bad_entry_hides_no_other():
    text = (
        '{"declaredFeatures": ["A", 3], "features": {"b": true, "c": "x"},'
        ' "runtimeHandlers": {"runc": {"d": true}, "odd": {"e": 3}}}'
    )
    found = node_features.decode(text)
    assert found == NodeFeatures(("A",), {"b": True}, {"runc": {"d": True}})
