"""The settings of the interpreter, by what they are for."""

from __future__ import annotations

import asyncio
import gc
import ssl
from asyncio import sslproto

import pytest

from vnode.runtime import memory


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


async def test_a_tls_connection_keeps_no_larger_buffer_than_was_said(settings):
    """asyncio documents no way to say so: a new Python may need another one."""
    memory.configure()
    loop = asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    waiter = loop.create_future()
    protocol = sslproto.SSLProtocol(loop, asyncio.Protocol(), context, waiter, server_hostname="x")
    assert len(protocol.get_buffer(-1)) == memory.TLS_BUFFER
    waiter.cancel()
