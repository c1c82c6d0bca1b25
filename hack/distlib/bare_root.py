"""Copies what a virtual environment needs of its image into an empty root: no shell, no packages.

Runs in the build of the Containerfile's stage `distroless`, with the image's own Python and its
standard library only. It takes the interpreter and its library, the shared objects that these and
the environment load, users, and the entries of Debian's package database for the files that it
took: by these, scanners find what is known to be vulnerable. Certificates of authorities are copied
by the Containerfile: those that a build sees may be its machine's.

    python bare_root.py /opt/vnode /root-of-the-image
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

# Parts of the standard library that no agent imports; some are large.
_LEFT_OUT = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data")
_FILES = (
    "/etc/ssl/openssl.cnf",
    "/usr/lib/ssl",
    "/usr/share/ca-certificates",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/debian_version",
    "/usr/share/zoneinfo/UTC",
)
# A build may see its machine's certificates here, and keys are nobody's business.
_NOT_TAKEN = (Path("/etc/ssl/certs"), Path("/etc/ssl/private"))
_USERS = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532::/tmp:/sbin/nologin\n"
_GROUPS = "root:x:0:\nnonroot:x:65532:\n"
# What links at the top point at, in a system where `/lib` is `/usr/lib`.
_SYSTEM = tuple(Path("/usr", name) for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin"))
_LINKED = re.compile(r"(?:=> )?(/\S+) \(0x")  # of what ldd prints
_STATUS = Path("var/lib/dpkg/status")


class BareRoot:
    """A folder that is filled with files of this machine, at their own paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: set[Path] = set()

    def take(self, path: Path) -> None:
        """Copy a file, or a folder with all that is in it; links and what they point at as well."""
        if path in self._taken or path in _NOT_TAKEN or not path.exists():
            return
        self._taken.add(path)
        self._take_parents(path)
        if path.is_symlink():
            self._link(path)
        elif path.is_dir():
            self._at(path).mkdir(exist_ok=True)
            for entry in sorted(path.iterdir()):
                if entry.name not in (*_LEFT_OUT, "__pycache__") or "site-packages" in str(entry):
                    self.take(entry)
        else:
            shutil.copy2(path, self._at(path))

    def _take_parents(self, path: Path) -> None:
        for parent in reversed(path.parents[:-1]):
            if parent.is_symlink():
                self._link(parent)
            elif not os.path.lexists(self._at(parent)):
                self._at(parent).mkdir()

    def _link(self, path: Path) -> None:
        if not os.path.lexists(self._at(path)):
            self._at(path).symlink_to(os.readlink(path))
        if path.resolve() != path:
            self._take_target(Path(os.path.normpath(path.parent / os.readlink(path))))

    def _take_target(self, path: Path) -> None:
        """Copy what a link points at; of a folder of the system only what is asked for there."""
        if path in _SYSTEM:
            self._take_parents(path / "entry")
        else:
            self.take(path)

    def _at(self, path: Path) -> Path:
        return self._folder / path.relative_to("/")

    def files(self) -> list[Path]:
        """Return all files that were taken, where they are on this machine."""
        return sorted(path for path in self._taken if path.is_file())

    def write(self, path: str, text: str) -> None:
        """Write a file that the machine has otherwise."""
        file = self._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def linked(files: list[Path]) -> list[Path]:
    """Return the shared objects that the loader would load with programs or libraries."""
    own = [str(file) for file in files if _is_program(file)]
    if not own:
        return []
    done = subprocess.run(["ldd", *own], capture_output=True, text=True, check=False)
    return sorted({Path(path) for path in _LINKED.findall(done.stdout)})


def _is_program(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def packages(status: str, files: list[Path]) -> str:
    """Return the entries of dpkg's status for the packages that own one of the files."""
    names = {str(file.resolve()) for file in files}
    done = subprocess.run(
        [
            "dpkg",
            "--search",
            *sorted(names),
            *(name.removeprefix("/usr") for name in sorted(names)),
        ],
        capture_output=True,
        text=True,
        check=False,  # some files are of no package
    )
    owners = {line.partition(": ")[0].partition(":")[0] for line in done.stdout.splitlines()}
    entries = status.split("\n\n")
    kept = [e for e in entries if e.partition("\n")[0].removeprefix("Package: ") in owners]
    return "\n\n".join(kept) + "\n"


def main(environment: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    root = BareRoot(folder)
    library = Path(sysconfig.get_path("stdlib"))
    for path in (environment, library, Path(os.path.realpath(sys.executable))):
        root.take(path)
    for path in map(Path, _FILES):
        root.take(path)
    for shared in linked(root.files()):
        root.take(shared)
    root.write("etc/passwd", _USERS)
    root.write("etc/group", _GROUPS)
    if (status := Path("/") / _STATUS).exists():
        root.write(str(_STATUS), packages(status.read_text(), root.files()))
    (folder / "tmp").mkdir(mode=0o1777, exist_ok=True)
    (folder / "tmp").chmod(0o1777)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
