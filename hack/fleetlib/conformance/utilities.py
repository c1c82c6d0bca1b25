"""Takes programs from Debian's packages into an image, with the libraries that they are linked to.

The suite's network specs ask curl, nc, dig and getent for what busybox has no options for, its
shell would run its own nc whatever else there is, and its wget crashes beside Debian's libraries.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from hack.fleetlib import debian
from hack.fleetlib.realnode.images import LayerEntry

PROGRAMS: Final = {
    "curl": "curl",
    "wget": "wget",
    "nc.openbsd": "netcat-openbsd",
    "dig": "bind9-dnsutils",
    "getent": "libc-bin",
    "bash": "bash",
}
_LIBRARY: Final = re.compile(r"(?:^|\s)(/\S+) \(0x", re.MULTILINE)
_OTHERS: Final = [
    # Without it names are looked up before the files of the pod are read.
    LayerEntry("etc/nsswitch.conf", b"hosts: files dns\n"),
    # Specs count on one try, as of busybox: with twenty of each wget some would go on for hours.
    LayerEntry("etc/wgetrc", b"tries = 1\n"),
    LayerEntry("bin/sh", mode=0o777, kind=tarfile.SYMTYPE, link="bash"),
]


def entries() -> list[LayerEntry]:
    """Return the files of a layer with these programs; installs what the machine lacks."""
    debian.install(PROGRAMS)
    found: dict[str, LayerEntry] = {}
    for name in PROGRAMS:
        program = shutil.which(name) or name
        path = f"bin/{name.partition('.')[0]}"
        found[path] = LayerEntry(path, Path(program).read_bytes(), 0o755)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        for library in linked(listed.stdout):
            inside = library.lstrip("/")
            found.setdefault(inside, LayerEntry(inside, Path(library).read_bytes(), 0o755))
    return [*_OTHERS, *found.values()]


def linked(listed: str) -> list[str]:
    """Return the paths in what `ldd` prints: of libraries, and of the program that loads them."""
    return _LIBRARY.findall(listed)
