"""A root without a shell has what was taken, at the same places, and the packages of that."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.distlib import bare_root
from hack.distlib.bare_root import BareRoot


def test_links_are_kept_and_what_they_point_at_comes_along(tmp_path: Path):
    machine, root = tmp_path / "machine", tmp_path / "root"
    (machine / "real").mkdir(parents=True)
    (machine / "real" / "file.so.1").write_text("x")
    (machine / "link").symlink_to("real")
    (machine / "real" / "file.so").symlink_to("file.so.1")
    root.mkdir()

    taken = BareRoot(root)
    taken.take(machine / "link" / "file.so")

    made = root / machine.relative_to("/")
    assert (made / "link").is_symlink()
    assert (made / "real" / "file.so").is_symlink()
    assert (made / "link" / "file.so").read_text() == "x"


def test_parts_of_the_library_that_nobody_needs_are_left_out(tmp_path: Path):
    machine, root = tmp_path / "machine", tmp_path / "root"
    for part in ("json", "idlelib", "site-packages/test"):
        (machine / part).mkdir(parents=True)
        (machine / part / "a.py").write_text("")
    root.mkdir()

    taken = BareRoot(root)
    taken.take(machine)

    files = {str(file.relative_to(machine)) for file in taken.files()}
    assert files == {"json/a.py", "site-packages/test/a.py"}


def test_only_programs_and_libraries_are_asked_for_what_they_load(tmp_path: Path):
    text = tmp_path / "a.py"
    text.write_text("import os")
    program = Path(sys.executable).resolve()
    assert bare_root.linked([text]) == []
    assert any("libc." in str(path) for path in bare_root.linked([text, program]))


def test_certificates_of_the_machine_do_not_come_along(tmp_path: Path):
    root, links = tmp_path / "root", tmp_path / "links"
    root.mkdir()
    links.mkdir()
    (links / "certs").symlink_to("/etc/ssl/certs")

    taken = BareRoot(root)
    taken.take(links)

    assert (root / links.relative_to("/") / "certs").is_symlink()
    assert not (root / "etc").exists()
