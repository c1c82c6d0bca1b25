"""The version before: which commit it is, and its sources and interpreter in the cache folder.

It runs with the libraries that it was tested with: in an environment of its own, unless they are
those of this version. The history of the clone is asked only
here: a shallow clone cannot run the upgrade tests, and says how to get what is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Final

from hack.fleetlib import cachefolder
from hack.fleetlib.agents import VnodeTree
from tests import kit

COMMIT: Final = "5f4cb6a3551f0ac88ab2a0adcb4d12ab73fa015f"
"""The last of 25 November 2026, version 0.1.0, which the review of operations tried.

Since then a kind, fields of four CRDs, some forty annotations, the agents' admission policies, the
match conditions of the webhook and the secret in its paths, and the admission process have come.
The commits just before 0.2.0 had all of them.
"""


def tree() -> VnodeTree:
    """Return the version before, or what $VNODE_BEFORE names: a commit, or a folder of sources."""
    chosen = os.environ.get("VNODE_BEFORE") or COMMIT
    folder = Path(chosen) if (Path(chosen) / "vnode").is_dir() else _extracted(chosen)
    if _libraries(folder) == _libraries(kit.ROOT):
        return VnodeTree(folder)

    made = kit.run([sys.executable, str(folder / "hack" / "venv")], cwd=folder)
    return VnodeTree(folder, made.strip())


def _libraries(folder: Path) -> tuple[object, str]:
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return project["dependencies"], (folder / "hack" / "constraints.txt").read_text()


def _extracted(revision: str) -> Path:
    """Return a folder with the sources of a commit, which stays for the next run."""
    found = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if found.returncode:
        raise AssertionError(
            f"the version before, commit {revision}, is not in this clone: run "
            "`git fetch --unshallow`, or set VNODE_BEFORE to a folder with its sources"
        )

    commit = found.stdout.decode().strip()
    folder = cachefolder.path() / "trees" / commit
    with cachefolder.locked(f"tree-{commit}", lambda: None):
        if not (folder / "vnode").is_dir():
            archive = _git("archive", "--format=tar", commit)
            archive.check_returncode()
            with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
                files.extractall(folder, filter="data")

    return folder


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *words], cwd=kit.ROOT, capture_output=True, check=False)
