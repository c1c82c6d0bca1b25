"""Whether an interpreter can run vnode as it is, or needs the project's virtual environment."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib import metadata

from hack.fleetlib import venv

NOT_AT_ONCE = {"kubernetes-asyncio"}  # imported when a kubeconfig asks for it

PROJECT = tomllib.loads((venv.REPOSITORY / "pyproject.toml").read_text())


def names_in(requirements: Iterable[str]) -> set[str]:
    found = {re.split(r"[><=~ ]", one)[0] for one in requirements}
    return {name.lower().replace("_", "-") for name in found}


def test_each_requirement_has_one_version() -> None:
    lines = venv.CONSTRAINTS.read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pinned)
    groups = PROJECT["dependency-groups"].values()
    tools = [one for group in groups for one in group if isinstance(one, str)]
    assert names_in([*PROJECT["project"]["dependencies"], *tools]) <= names_in(pinned)


def test_an_interpreter_is_good_enough_only_with_every_dependency() -> None:
    wanted = names_in(PROJECT["project"]["dependencies"])
    found = {
        name.lower().replace("_", "-")
        for module in venv._NEEDED
        for name in metadata.packages_distributions()[module]
    }
    assert wanted - NOT_AT_ONCE <= found
