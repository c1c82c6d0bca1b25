"""System calls work where the interpreter has them, and where only the kernel has."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path

import pytest

from tests import kit
from vnode.kube import linux_calls


@pytest.fixture(params=["of os", "of the kernel"], autouse=True)
def _interpreter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take from `os` what interpreters that are built for any Linux lack."""
    if request.param == "of the kernel":
        for name in ("memfd_create", "pidfd_open"):
            monkeypatch.delattr(os, name, raising=False)


def test_a_file_in_memory_has_a_path_and_is_on_no_disk() -> None:
    handle = linux_calls.memory_file("certificate")
    try:
        os.write(handle, b"secret")
        here = Path(f"/proc/self/fd/{handle}")
        assert here.read_bytes() == b"secret"
        assert os.readlink(here).startswith("/memfd:certificate")
        assert not os.get_inheritable(handle)
    finally:
        os.close(handle)


def test_a_process_is_awaited() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        descriptor = linux_calls.process_descriptor(process.pid)
        try:
            assert select.select([descriptor], [], [], 0)[0] == []
            assert process.stdin is not None
            process.stdin.close()
            assert select.select([descriptor], [], [], kit.PATIENCE)[0] == [descriptor]
        finally:
            os.close(descriptor)


def test_a_process_that_is_gone_is_an_error() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()

    with pytest.raises(ProcessLookupError):
        linux_calls.process_descriptor(process.pid)
