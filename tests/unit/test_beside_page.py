"""The page of tools beside vnode names every condition that one can wait for.

Conditions are found in the code: where one of our own kinds is built, and where a dict is one.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.kit import ROOT
from vnode.api import keys, status_conditions
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.issuing import steps
from vnode.placement.moves import rebalance_status
from vnode.placement.policies.judging import ACCEPTED
from vnode.placement.status import conditions as of_policies
from vnode.targets import conditions as of_targets

PAGE: Final = (ROOT / "docs" / "beside.md").read_text()
SECTION: Final = PAGE.partition("## kubectl")[2].partition("\n## ")[0]

CHOSEN_AT_RUN_TIME: Final[dict[str, tuple[str, ...]]] = {
    "vnode.api.status_conditions": (),  # builds what others name
    "vnode.issuing.steps": (
        *(step.value for step in steps.IssueStep),
        steps.EXPIRED,
        steps.REVOKED,
    ),
    "vnode.placement.moves.rebalance_status": rebalance_status.CONDITIONS,
    "vnode.placement.status.conditions": (
        *(ACCEPTED, of_policies.DECIDED, of_policies.PUBLISHED),
        of_policies.CLUSTERS_FOUND,
    ),
    "vnode.targets.name_conflicts": (of_targets.CLUSTER_NAME_UNIQUE,),
    "vnode.nodes.virtual": ("Ready", keys.KUBELET_CERTIFICATE, keys.MEMBER_TAINTS_SYNCED),
    "vnode.gangs.group_status": ("PodGroupScheduled", "PodGroupInitiallyScheduled"),
}
"""What a module names by a variable. A condition of another module fails the test until named."""

NOT_OURS_TO_WAIT_FOR: Final = frozenset({"Approved"})
"""Of requests for the agents' own certificates."""


def modules() -> Iterator[ModuleType]:
    for path in sorted((ROOT / "vnode").rglob("*.py")):
        text = path.read_text()
        if "status_conditions" in text or '"status":' in text:
            yield importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def expressions(module: ModuleType) -> Iterator[ast.expr]:
    """Yield the expressions by which a module names the types of conditions that it builds."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        if isinstance(node, ast.Call) and is_builder(node.func, module):
            yield node.args[1]
        elif isinstance(node, ast.Dict):
            entries = {ast.unparse(k): v for k, v in zip(node.keys, node.values, strict=True) if k}
            if {"'type'", "'status'"} <= entries.keys():
                yield entries["'type'"]


def is_builder(function: ast.expr, module: ModuleType) -> bool:
    named = ast.unparse(function)
    return named == "status_conditions.build" or (
        named == "build" and getattr(module, "build", None) is status_conditions.build
    )


def written() -> Iterator[str]:
    """Yield every type of condition that vnode writes."""
    for module in modules():
        for expression in expressions(module):
            try:
                yield eval(ast.unparse(expression), vars(module))  # noqa: S307 - our own source
            except NameError:
                yield from CHOSEN_AT_RUN_TIME[module.__name__]


@pytest.mark.parametrize("condition", sorted(set(written()) - NOT_OURS_TO_WAIT_FOR))
def test_each_condition_that_vnode_writes_is_in_the_table(condition: str) -> None:
    said = "Ready says" if condition == "Ready" else f"`{condition}`"
    assert said in SECTION


@pytest.mark.parametrize("crd", manifests.crds(), ids=lambda crd: str(crd["spec"]["names"]["kind"]))
def test_each_kind_with_conditions_is_in_the_table(crd: Object) -> None:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    if "conditions" in schema.get("status", {}).get("properties", {}):
        assert crd["spec"]["names"]["kind"] in SECTION
