"""Writes archives that depend on what is in them, and on nothing else.

Names are sorted, the owner is root, and all times are those of the commit.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    path: str
    content: bytes
    executable: bool = False


def write(file: Path, entries: Iterable[ArchivedFile], epoch: int) -> None:
    """Write a .tar.gz of the entries."""
    with (
        file.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in sorted(entries, key=lambda entry: entry.path):
            header = tarfile.TarInfo(entry.path)
            header.size = len(entry.content)
            header.mtime = epoch
            header.mode = 0o755 if entry.executable else 0o644
            header.uname = header.gname = "root"
            archive.addfile(header, io.BytesIO(entry.content))


def of_folder(folder: Path, below: str = "") -> list[ArchivedFile]:
    """Return all files of a folder, put below `below` in the archive."""
    return [
        ArchivedFile(f"{below}{path.relative_to(folder)}", path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    ]


def of_archive(file: Path) -> list[ArchivedFile]:
    """Return all files of a .tar.gz."""
    with tarfile.open(file, "r:gz") as archive:
        return [
            ArchivedFile(header.name, opened.read(), bool(header.mode & 0o100))
            for header in archive
            if (opened := archive.extractfile(header)) is not None
        ]
