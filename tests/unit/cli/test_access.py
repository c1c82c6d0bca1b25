"""Which cluster a command talks to: kubectl's rules."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
import yaml

from vnode.api.errors import ConfigError
from vnode.cli import kubeconfigs
from vnode.cli.access import Access


def write(folder: Path, name: str, *, current: bool = True, server: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "ca.crt").write_text("authority")
    file = folder / f"{name}.yaml"
    cluster = {"server": server or f"https://{name}:6443", "certificate-authority": "ca.crt"}
    config = {
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": name}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        **({"current-context": name} if current else {}),
    }
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Clear the environment of everything that says where a cluster is."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


def cluster_of(access: Access) -> str:
    config = access.load()
    assert config is not None
    return kubeconfigs.cluster_of(config)[0].server


def test_the_option_comes_before_the_environment_and_that_before_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    write(tmp_path / "home" / ".kube", "home").rename(tmp_path / "home" / ".kube" / "config")
    assert cluster_of(Access()) == "https://home:6443"
    assert Access().load(home=False) is None
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path, "env")))
    assert cluster_of(Access()) == "https://env:6443"
    assert cluster_of(Access(write(tmp_path, "option"))) == "https://option:6443"


def test_several_files_are_one_and_the_first_to_name_a_thing_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        write(tmp_path / "a", "one", current=False),
        tmp_path / "missing.yaml",
        write(tmp_path / "b", "two"),
        write(tmp_path / "c", "one", server="https://never:1"),
    ]
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, files)))
    assert cluster_of(Access()) == "https://two:6443"
    assert cluster_of(Access(context="one")) == "https://one:6443"
    config = Access(context="two").load()
    assert config is not None
    endpoint, _name = kubeconfigs.cluster_of(config)
    assert endpoint.authority == b"authority"


def test_a_broken_file_among_several_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("{")
    monkeypatch.setenv("KUBECONFIG", f"{write(tmp_path, 'good')}:{broken}")
    with pytest.raises(ConfigError, match=str(broken)):
        Access().load()


def test_where_nothing_says_which_cluster_the_error_names_the_ways() -> None:
    with pytest.raises(ConfigError, match=r"there is no ~/\.kube/config: pass --kube.*, set KUBE"):
        Access().endpoint()


def test_the_default_file_is_named_where_it_will_not_do(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".kube" / "config"
    file.parent.mkdir()
    file.write_text("contexts: []")
    with pytest.raises(ConfigError, match=f"{file}: the kubeconfig has no current-context"):
        Access().endpoint()


@pytest.mark.parametrize("count", [1, 2])
async def test_an_exec_plugin_is_found_beside_the_kubeconfig_that_names_it(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl finds it: whoever runs the command is in another folder."""
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "of-the-plugin"},
    }
    folder = tmp_path / "clusters"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "token"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    program.chmod(0o755)
    plugin = {"apiVersion": answer["apiVersion"], "command": "bin/token"}
    file = folder / "config"
    config = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"exec": {**plugin, "interactiveMode": "Never"}}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    file.write_text(yaml.safe_dump(config))
    others = [str(write(tmp_path / "other", "other", current=False))] * (count - 1)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(file), *others]))
    endpoint = await asyncio.to_thread(Access().endpoint)
    assert await endpoint.authorization() == "Bearer of-the-plugin"
