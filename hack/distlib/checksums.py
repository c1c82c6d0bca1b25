"""Sums of files, as `sha256sum --check` reads them."""

from __future__ import annotations

import hashlib
from pathlib import Path

NAME = "SHA256SUMS"


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def write(folder: Path) -> None:
    """Write SHA256SUMS over all other files of a folder."""
    files = sorted(file for file in folder.iterdir() if file.name != NAME)
    (folder / NAME).write_text("".join(f"{sha256(file)}  {file.name}\n" for file in files))
