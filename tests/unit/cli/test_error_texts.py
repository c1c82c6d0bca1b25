"""What commands say where they cannot reach their cluster: what is wrong, and what to do."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from vnode.api.errors import ConfigError, Denied, NotFound, Unreachable, VnodeError
from vnode.cli import error_texts, main
from vnode.cli.access import Access
from vnode.telemetry import logs

ADDRESS = "see that its API server runs, and that the kubeconfig's server is its address"
UNTRUSTED = (
    "source: Cannot connect to host c1:6443 ssl:True [SSLCertVerificationError: (1, "
    "'[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1"
    "006)')]"
)
CONFIG = """
contexts: [{name: one, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:%d"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unreachable("source: timed out"), f"source: timed out: {ADDRESS}"),
        (Unreachable("c1: the answer has no pod"), "c1: the answer has no pod"),
        (
            Unreachable(UNTRUSTED),
            "source: the certificate of its API server is not trusted (certificate has expired): ",
        ),
        (Denied(401, "Unauthorized", "Unauthorized"), "log in again, or get a new one"),
        (
            Denied(403, "Forbidden", 'pods is forbidden: User "ann" cannot list resource "pods"'),
            "have an administrator of that cluster allow it",
        ),
        (Denied(403, "Forbidden", "pods is forbidden: exceeded quota: q"), "exceeded quota: q"),
        (NotFound(404, "NotFound", 'pods "x" not found'), '404 NotFound: pods "x" not found'),
        (ConfigError("write it so"), "write it so"),
    ],
)
def test_what_keeps_a_command_from_its_cluster_is_told_with_the_cure(
    error: VnodeError, expected: str
) -> None:
    text = error_texts.text_of(error)
    assert expected in text
    assert "ssl:" not in text
    assert "\n" not in text


@pytest.mark.parametrize("words", [["explain", "web"], ["get", "targets"], ["top", "pods"]])
def test_a_cluster_that_does_not_answer_is_named_with_its_address(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    file = tmp_path / "config"
    file.write_text(CONFIG % port)
    given = ["--kubeconfig", str(file), "--context", "one"]
    monkeypatch.setattr(sys, "argv", ["vnode", *words, *given])
    monkeypatch.setattr(logs, "configure", lambda *_words: None)
    with pytest.raises(SystemExit) as ended:
        main.main()

    assert ended.value.code == 1
    told = f"Error: cluster: cannot connect to 127.0.0.1:{port}: Connection refused: {ADDRESS}"
    assert capsys.readouterr().err.strip() == told


def test_contexts_are_listed_where_none_is_chosen(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG % 1)
    with pytest.raises(ConfigError, match=r"set one, or name a context; it has 'one'$"):
        Access(file).load()


def test_files_of_the_environment_that_do_not_exist_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/absent/a:/absent/b")
    with pytest.raises(ConfigError, match=r"KUBECONFIG exists: /absent/a, /absent/b; or pass"):
        Access().load()
