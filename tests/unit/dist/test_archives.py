"""An archive depends on what is in it, and on nothing else."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

from hack.distlib import archives, checksums
from hack.distlib.archives import ArchivedFile

EPOCH = 1_700_000_000
FILES = [ArchivedFile("b/run", b"#!", executable=True), ArchivedFile("a", b"content")]


def test_order_and_time_of_writing_do_not_count(tmp_path: Path):
    one, other = tmp_path / "one.tar.gz", tmp_path / "other.tar.gz"
    archives.write(one, FILES, EPOCH)
    archives.write(other, reversed(FILES), EPOCH)
    assert one.read_bytes() == other.read_bytes()


def test_what_was_written_is_read_again(tmp_path: Path):
    file = tmp_path / "one.tar.gz"
    archives.write(file, FILES, EPOCH)
    assert archives.of_archive(file) == sorted(FILES, key=lambda entry: entry.path)
    with tarfile.open(file) as opened:
        assert {(header.mtime, header.uid) for header in opened} == {(EPOCH, 0)}


def test_files_of_a_folder_are_named_from_there(tmp_path: Path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "y").write_text("z")
    assert archives.of_folder(tmp_path, "below/") == [ArchivedFile("below/x/y", b"z")]


def test_sums_are_those_that_sha256sum_checks(tmp_path: Path):
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    checksums.write(tmp_path)
    checksums.write(tmp_path)  # is not a sum of itself
    names = [line.split("  ")[1] for line in (tmp_path / checksums.NAME).read_text().splitlines()]
    assert names == ["a", "b"]
    command = ["sha256sum", "--check", "--strict", checksums.NAME]
    assert subprocess.run(command, cwd=tmp_path, env=os.environ).returncode == 0
