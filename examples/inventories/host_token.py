#!/usr/bin/env python3
"""Prints the token in FOLDER/HOST, where HOST is that of the server which a ClusterProfile names.

An exec plugin for profiles that do not say which Secret is whose, as Fleet's: see
docs/inventory-fleet.md. FOLDER is a Secret that is mounted, with hosts as its keys.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def main() -> None:
    """Answer what `KUBERNETES_EXEC_INFO` asks."""
    asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
    host = urlsplit(asked["spec"]["cluster"]["server"]).hostname or ""
    if not _HOST.fullmatch(host) or not (file := Path(sys.argv[1], host)).is_file():
        sys.exit(f"there is no token for host {host!r}")

    status = {"token": file.read_text().strip()}
    print(json.dumps({"apiVersion": asked["apiVersion"], "kind": asked["kind"], "status": status}))


if __name__ == "__main__":
    main()
