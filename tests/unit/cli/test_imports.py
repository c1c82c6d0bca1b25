"""What commands import, which is most of what a short one takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

RUN: Final = """
import json, sys
from vnode.api.errors import VnodeError
from vnode.cli.main import cli
try:
    cli.main(sys.argv[1:], standalone_mode=False)
except VnodeError:
    pass
finally:
    print(json.dumps([*sys.modules]))
"""
UNREACHABLE: Final = """{
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {"token": "t"}}]
}"""
SERVING: Final = {"aiohttp.web", "cryptography.x509", "OpenSSL", "vnode.runtime.serving"}
PLUGINS: Final = {"kubernetes_asyncio", "vnode.kube.exec_plugins", "vnode.kube.oidc"}
INFORMERS: Final = {"vnode.kube.informer", "vnode.runtime.links"}
DECIDING: Final = {"scheduler_plugins"} | {
    f"vnode.{name}" for name in ("scheduling", "planning", "placement", "overrides", "targetsets")
}


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        ("version", set()),
        ("version --kubeconfig FILE", set()),
        ("connect --source FILE --target FILE", INFORMERS),
        ("install --kubeconfig FILE", INFORMERS),
        ("get targets --kubeconfig FILE", set()),
        ("get pods --kubeconfig FILE", set()),
    ],
)
def test_a_command_imports_nothing_that_is_for_others(words: str, needed: set[str], tmp_path: Path):
    file = tmp_path / "kubeconfig"
    file.write_text(UNREACHABLE)
    own = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words.replace("FILE", str(file)).split()],
        env={**own, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert {"vnode.cli.main", "vnode.kube.endpoint"} <= imported
    assert imported & (SERVING | PLUGINS | DECIDING | INFORMERS) <= needed
