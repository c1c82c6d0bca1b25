"""The virtual environment of a checkout, in the cache folder: made when it is first needed.

Libraries are installed once for all checkouts that want the same ones, those of vnode apart from
the tools of tests. The environment of a checkout points to them, and to the checkout, so that it
is made in a moment and without network.

Standard library only, because it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hack.fleetlib import cachefolder, progress, side_by_side
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
_TOOLS = ("test", "lint")  # dependency groups
_HERE = f"python{sys.version_info.major}.{sys.version_info.minor}"
_FORM = 1  # of environments: those of another are left to whoever has made them


def enter(script: str, *, tools: bool = False, beside: Callable[[], object] = lambda: None) -> None:
    """Go on in this interpreter if it has what vnode needs, else run `script` again in another.

    That has the tools of tests as well, if they are asked for or are there anyway. While it is
    made, `beside` is called, which can do what needs no libraries.
    """
    if all(importlib.util.find_spec(name) for name in _NEEDED):
        return
    with_tools = tools or cachefolder.is_finished(_libraries(tools=True))
    try:
        side_by_side.each([lambda: ensure(tools=with_tools), beside], lambda task: task())
        python = str(ensure(tools=with_tools))
    except FleetError as error:
        sys.exit(f"{Path(script).name}: {error}")
    os.execv(python, [python, script, *sys.argv[1:]])  # noqa: S606


def ensure(*, tools: bool) -> Path:
    """Return an interpreter that has vnode's libraries, and those of tests; make it if needed."""
    libraries = _libraries(tools=tools)
    cachefolder.make_once(libraries, lambda: _install(libraries, _requirements(tools=tools)), _wait)
    checkout = _folder("checkout", f"{REPOSITORY} {libraries} {_project()['project']['scripts']}")
    cachefolder.make_once(checkout, lambda: _point(checkout, libraries), _wait)
    return checkout / "bin" / "python"


def _wait() -> None:
    progress.say("another process is making the virtual environment; waiting for it ...")


def _libraries(*, tools: bool) -> Path:
    return _folder("libraries", f"{_requirements(tools=tools)} {CONSTRAINTS.read_text()}")


def _folder(kind: str, content: str) -> Path:
    digest = hashlib.sha256(f"{_FORM} {content}".encode()).hexdigest()[:12]
    return cachefolder.path() / "venv" / f"{kind}-{_HERE}-{digest}"


def _install(folder: Path, requirements: list[str]) -> None:
    """Install libraries into an environment of their own."""
    with progress.reported(f"installing libraries into {folder}"):
        _run([sys.executable, "-m", "venv", str(folder)], "is python3-venv installed?")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install"]
        install = [*pip, "--quiet", "--disable-pip-version-check"]
        hint = "is a package index reachable?"
        try:
            _run([*install, "--constraint", str(CONSTRAINTS), *requirements], hint)
        except FleetError as error:
            # Mirrors lag behind: other versions are better than none, as long as somebody is told.
            progress.say(f"{error}\ntaking other versions than those of {CONSTRAINTS.name} ...")
            _run([*install, *requirements], hint)


def _point(checkout: Path, libraries: Path) -> None:
    """Make an environment in which this checkout is installed, beside those libraries."""
    venv.create(checkout, symlinks=True)
    [packages] = checkout.glob("lib/*/site-packages")
    [shared] = libraries.glob("lib/*/site-packages")
    path = f"{REPOSITORY}\nimport site; site.addsitedir({str(shared)!r})\n"
    (packages / "vnode.pth").write_text(path)
    commands = checkout / "bin"
    for there in (libraries / "bin").iterdir():
        if not (commands / there.name).exists():
            (commands / there.name).symlink_to(there)

    for name, function in _project()["project"]["scripts"].items():
        module, _, called = function.partition(":")
        code = f"import sys\n\nfrom {module} import {called}\n\nsys.exit({called}())\n"
        (commands / name).write_text(f"#!{commands / 'python'}\n{code}")
        (commands / name).chmod(0o755)


def _requirements(*, tools: bool) -> list[str]:
    """Read what is to be installed, groups as well, because only new versions of pip can."""
    project = _project()
    groups = [project["dependency-groups"][name] for name in _TOOLS if tools]
    groups += project["project"]["optional-dependencies"].values() if tools else ()
    wanted = [one for group in groups for one in group if isinstance(one, str)]
    return [*project["project"]["dependencies"], *wanted]


def _project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def _run(command: list[str], hint: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        text = (done.stdout + done.stderr).strip()
        raise FleetError(f"{' '.join(command[:4])} ... failed; {hint}\n{text}")
