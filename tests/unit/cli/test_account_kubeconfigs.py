"""Which files are replaced by the kubeconfig of an agent's account."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apiserver.server import APIServer
from tests.unit.cli.test_imports import UNREACHABLE
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.cli import account_kubeconfigs
from vnode.cli.access import Access


async def write(folder: Path, file: Path) -> list[str]:
    """Write the kubeconfig of the agent's account to a file, as an administrator."""
    server, said = APIServer("c1", SystemClock()), list[str]()
    server.add(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "vnode", "namespace": "vnode"}})
    admin = folder / "admin"
    admin.write_text(UNREACHABLE)
    account = ("vnode", "vnode")
    await account_kubeconfigs.write(
        server.client(), Access(admin), account, file, 3600, said.append
    )
    return said


async def test_a_kubeconfig_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    """As with `--agent-kubeconfig ~/.kube/config`."""
    file = tmp_path / "config"
    file.write_text(UNREACHABLE)
    with pytest.raises(ConfigError, match=r"has not written \(its contexts: a\): name another"):
        await write(tmp_path, file)

    assert file.read_text() == UNREACHABLE


@pytest.mark.parametrize("before", ["", "of before"])
async def test_what_an_earlier_run_has_written_is_replaced_and_what_is_no_kubeconfig(
    tmp_path: Path, before: str
) -> None:
    file = tmp_path / "agent"
    file.write_text(before)

    for _run in range(2):
        [line] = await write(tmp_path, file)
        assert line.startswith(f"{file}: kubeconfig of serviceaccount/vnode")
