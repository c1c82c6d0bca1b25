#!/usr/bin/env python3
"""Runs `kubectl vnode` with the libraries beside this file that fit the Python that runs it."""

import sys
from pathlib import Path

LIBRARIES = Path(__file__).resolve().parent / "lib"
OWN = LIBRARIES / f"cp{sys.version_info.major}{sys.version_info.minor}"

if not OWN.is_dir():
    found = ", ".join(sorted(path.name[2:].replace("3", "3.", 1) for path in LIBRARIES.glob("cp*")))
    sys.exit(
        f"kubectl vnode: {sys.executable} is Python {sys.version.split()[0]}; use one of {found}"
    )

sys.path[:0] = [str(OWN), str(LIBRARIES / "any")]

from vnode.cli.main import kubectl_plugin  # noqa: E402

kubectl_plugin()
