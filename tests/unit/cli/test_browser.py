"""Who can see the address of `vnode dashboard` while a browser is opened."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from vnode.cli.dashboard import browser

ADDRESS = "http://127.0.0.1:41234/a-secret-path/"


async def test_what_other_users_see_of_a_browser_has_no_address_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files: list[Path] = []

    def open_browser(shown: str) -> None:
        assert "secret" not in shown
        file = Path(unquote(urlsplit(shown).path))
        assert f'content="0; url={ADDRESS}"' in file.read_text()
        assert file.parent.stat().st_mode & 0o077 == 0
        files.append(file)

    monkeypatch.setattr(webbrowser, "open", open_browser)
    async with browser.opened(ADDRESS):
        pass

    [file] = files
    assert not file.parent.exists()
