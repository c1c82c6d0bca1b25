"""The bytes of upgrade requests and of their answers."""

from __future__ import annotations

import pytest

from vnode.kubelet.refusal import Refused
from vnode.kubelet.streams import http_upgrade

ASKED = [
    ("Host", "10.0.0.1:10250"),
    ("Authorization", "Bearer of-the-caller"),
    ("Connection", "Upgrade"),
    ("Upgrade", "SPDY/3.1"),
    ("X-Stream-Protocol-Version", "v5.channel.k8s.io"),
    ("X-Stream-Protocol-Version", "v4.channel.k8s.io"),
    ("Sec-WebSocket-Key", "abc=="),
]


def test_the_request_keeps_protocols_and_drops_the_callers_credentials():
    head = http_upgrade.request(
        "POST",
        "target:6443",
        "/api/v1/namespaces/a/pods/b/exec",
        "command=echo&command=a+b%26c",
        ASKED,
        [("Authorization", "Bearer ours")],
    ).decode()

    lines = head.split("\r\n")
    assert lines[0] == (
        "POST /api/v1/namespaces/a/pods/b/exec?command=echo&command=a+b%26c HTTP/1.1"
    )
    assert lines.count("X-Stream-Protocol-Version: v5.channel.k8s.io") == 1
    assert lines.count("X-Stream-Protocol-Version: v4.channel.k8s.io") == 1
    assert "Sec-WebSocket-Key: abc==" in lines
    assert "Authorization: Bearer ours" in lines
    assert "Host: target:6443" in lines
    assert "of-the-caller" not in head
    assert "10.0.0.1" not in head
    assert head.endswith("\r\n\r\n")


def test_the_agreed_protocol_is_passed_back():
    answer = http_upgrade.parse(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        b"X-Stream-Protocol-Version: v5.channel.k8s.io\r\nDate: today"
    )

    assert http_upgrade.switching_protocols(answer) == (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        b"X-Stream-Protocol-Version: v5.channel.k8s.io\r\n\r\n"
    )


def test_what_is_no_http_is_refused():
    with pytest.raises(Refused):
        http_upgrade.parse(b"SSH-2.0-OpenSSH")


@pytest.mark.parametrize("end", ["\n", "\r", "\0", "\n\n"])
def test_a_header_within_another_is_refused(end):
    """An API server would pass it on to the user, as one of its own."""
    head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1{end}Set-Cookie: a=b"
    with pytest.raises(Refused):
        http_upgrade.parse(head.encode())


def test_a_chunked_error_is_put_together():
    answer = http_upgrade.parse(b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked")
    body = b"4\r\nnot \r\n3\r\nyou\r\n0\r\n\r\n"

    assert not http_upgrade.is_complete(answer, body[:-5])
    assert http_upgrade.is_complete(answer, body)
    assert http_upgrade.dechunk(body) == b"not you"


def test_an_error_with_a_length_is_complete_when_it_is_there():
    answer = http_upgrade.parse(b"HTTP/1.1 404 Not Found\r\nContent-Length: 3")

    assert not http_upgrade.is_complete(answer, b"no")
    assert http_upgrade.is_complete(answer, b"no!")


def test_an_upgrade_must_be_asked_for():
    assert http_upgrade.is_requested(ASKED)
    assert not http_upgrade.is_requested([("Connection", "keep-alive")])
