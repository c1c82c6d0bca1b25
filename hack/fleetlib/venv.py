"""The project's virtual environment, in the cache folder: made when it is first needed.

Standard library only, because it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from hack.fleetlib import cachefolder, progress
from hack.fleetlib.errors import FleetError

REPOSITORY = Path(__file__).resolve().parents[2]
CONSTRAINTS = REPOSITORY / "hack" / "constraints.txt"
_NEEDED = (
    "OpenSSL",
    "aiohttp",
    "click",
    "cryptography",
    "msgspec",
    "prometheus_client",
    "re2",
    "yaml",
)
_GROUPS = ("test", "lint")
_TABLES = ("build-system", "project", "dependency-groups")  # of what is to be in it


def enter(script: str) -> None:
    """Go on in this interpreter if it has what vnode needs, else run `script` again in the venv."""
    if all(importlib.util.find_spec(name) for name in _NEEDED):
        return
    try:
        python = str(ensure())
    except FleetError as error:
        sys.exit(f"{Path(script).name}: {error}")
    os.execv(python, [python, script, *sys.argv[1:]])  # noqa: S606


def folder() -> Path:
    """Return one venv for each interpreter, clone, and what is to be in it."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    content = [project.get(table) for table in _TABLES] + [project["tool"]["hatch"]]
    identity = f"{REPOSITORY} {content} {CONSTRAINTS.read_text()}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return cachefolder.path() / "venv" / f"python{version}-{digest}"


def ensure() -> Path:
    """Return the venv's interpreter; make the venv first if it does not exist."""
    python = folder() / "bin" / "python"
    finished = folder() / "finished"
    if finished.exists():
        return python

    def waiting() -> None:
        progress.say("another process is making the virtual environment; waiting for it ...")

    with cachefolder.locked(folder().name, waiting):
        if not finished.exists():
            with progress.reported(f"making the virtual environment {folder()}"):
                _make(python)
            finished.touch()
    return python


def _make(python: Path) -> None:
    shutil.rmtree(folder(), ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder())], "is python3-venv installed?")
    requirements = [one for group in _GROUPS for one in _group(group)]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = ["--editable", str(REPOSITORY), *requirements]
    hint = "is a package index reachable?"
    try:
        _run([*install, "--constraint", str(CONSTRAINTS), *wanted], hint)
    except FleetError as error:
        # Mirrors lag behind: other versions are better than none, as long as somebody is told.
        progress.say(f"{error}\ntaking other versions than those of {CONSTRAINTS.name} ...")
        _run([*install, *wanted], hint)


def _group(name: str) -> list[str]:
    """Read the requirements of a dependency group here, because only new versions of pip can."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    return [one for one in project["dependency-groups"][name] if isinstance(one, str)]


def _run(command: list[str], hint: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        text = (done.stdout + done.stderr).strip()
        raise FleetError(f"{' '.join(command[:4])} ... failed; {hint}\n{text}")
