"""The ports of an agent's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnode.agent import config
from vnode.api.errors import ConfigError


def configuration(folder: Path, ports: str) -> Path:
    file = folder / "agent.yaml"
    file.write_text(f"apiVersion: {config.API_VERSION}\nkind: {config.KIND}\nports: {{{ports}}}\n")
    return file


def test_two_servers_are_not_given_one_port(tmp_path: Path) -> None:
    """An agent would end at its start, when the second of them finds its port in use."""
    with pytest.raises(ConfigError, match=r"ports\.webhook and ports\.kubelet are both 9443: give"):
        config.load(configuration(tmp_path, "kubelet: 9443"))


def test_servers_that_are_left_out_have_no_port(tmp_path: Path) -> None:
    loaded = config.load(configuration(tmp_path, "streams: 0, dashboard: 0"))
    assert loaded.ports == config.Ports(streams=0)
