"""How long an agent that ends waits for the streams that are open."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from vnode.agent import config
from vnode.agent.config import AgentConfig
from vnode.agent.kubelet_api import last_grace
from vnode.agent.shared import AgentOptions
from vnode.api.errors import ConfigError

HEAD = "apiVersion: vnode.dev/v1alpha1\nkind: AgentConfiguration\n"


def load(folder: Path, text: str) -> AgentConfig:
    file = folder / "agent.yaml"
    file.write_text(HEAD + text)
    return config.load(file)


@pytest.mark.parametrize(
    ("text", "requested", "wanted"),
    [
        ("", True, 20),
        ("streamGracePeriodSeconds: 7200", True, 7200),
        ("streamGracePeriodSeconds: 7200", False, 20),
        ("streamGracePeriodSeconds: 5", False, 5),
        ("streamGracePeriodSeconds: 0", True, 0),
    ],
)
def test_streams_get_what_is_configured_unless_a_fault_ends_the_agent(
    tmp_path: Path, text: str, requested: bool, wanted: int
) -> None:
    options = AgentOptions(
        "vnode", "192.0.2.1", load(tmp_path, text), None, "agent", asyncio.Event()
    )
    if requested:
        options.stop_requested.set()

    assert last_grace(options) == wanted


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("-1", "streamGracePeriodSeconds must be from 0 to 86400"),
        ("86401", "streamGracePeriodSeconds must be from 0 to 86400"),
        (".inf", "Expected `int`"),
        ("1h", "Expected `int`"),
    ],
)
def test_a_grace_period_that_cannot_be_is_refused(
    tmp_path: Path, value: str, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(tmp_path, f"streamGracePeriodSeconds: {value}")
