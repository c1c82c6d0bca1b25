"""Whether an interpreter can run vnode as it is, or needs the project's virtual environment."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

from hack.fleetlib import venv

NOT_AT_ONCE = {"kubernetes-asyncio"}  # imported when a kubeconfig asks for it


def test_an_interpreter_is_good_enough_only_with_every_dependency() -> None:
    project = tomllib.loads((venv.REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[><=~ ]", one)[0].lower() for one in project["dependencies"]}
    found = {
        name.lower().replace("_", "-")
        for module in venv._NEEDED
        for name in metadata.packages_distributions()[module]
    }
    assert wanted - NOT_AT_ONCE <= found
