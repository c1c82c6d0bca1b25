"""Whether an interpreter can run vnode as it is, or needs the project's virtual environment."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import threading
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest

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


def test_who_runs_no_tests_gets_no_tools_of_tests() -> None:
    assert names_in(venv._requirements(tools=False)) == names_in(PROJECT["project"]["dependencies"])
    assert {"pytest", "ruff"} <= names_in(venv._requirements(tools=True))


def test_another_checkout_shares_the_libraries_and_has_vnode_of_its_own(tmp_path: Path) -> None:
    venv._point(tmp_path / "venv", venv._libraries(tools=True))
    commands = tmp_path / "venv" / "bin"

    def said(*command: str | Path) -> str:
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    where = said(commands / "python", "-c", "import aiohttp, vnode; print(vnode.__file__)")
    assert Path(where.strip()) == venv.REPOSITORY / "vnode" / "__init__.py"
    assert said(commands / "python", "-m", "ruff", "--version").startswith("ruff ")
    assert "Usage: vnode" in said(commands / "vnode", "--help")


def test_programs_are_fetched_while_the_environment_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met = threading.Barrier(2, timeout=60)
    left: list[str] = []

    def ensure(*, tools: bool) -> Path:
        if not left:
            met.wait()
            left.append("made")
        return Path("/made/python")

    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(venv, "ensure", ensure)
    monkeypatch.setattr(os, "execv", lambda path, words: left.append(f"{path} {words[1]}"))
    venv.enter("hack/demo", beside=met.wait)
    assert left == ["made", "/made/python hack/demo"]
