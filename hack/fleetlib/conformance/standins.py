"""Makes stand-ins for the images of Kubernetes' suite, where no registry has to be reached.

Each does what specs expect of the image whose name it has, with the machine's busybox and programs
that are built from Kubernetes' own sources.
"""

from __future__ import annotations

import subprocess
import tarfile
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from hack.fleetlib import certificates
from hack.fleetlib.realnode import images
from hack.fleetlib.realnode.images import LayerEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from hack.fleetlib.realnode.images import Images

PROGRAMS: Final = ("agnhost", "nonewprivs")
NAMES: Final = "coredns"
SERVERS: Final = {"sample-apiserver": "sample-apiserver", "etcd": "usr/local/bin/etcd"}
_SETUID: Final = 0o4755
_WEB: Final = ["httpd", "-f", "-p", "80", "-h", "/www"]
_PAGE: Final = b"<!DOCTYPE html><title>Welcome to nginx!</title><h1>Welcome to nginx!</h1>\n"
# The group of a user that the image, not the pod, has.
_USERS: Final = (
    "root:x:0:0:root:/root:/bin/sh\n"
    "user-defined-in-image:x:1000:1000::/home:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/home:/bin/false\n"
)
_GROUPS: Final = (
    "root:x:0:\n"
    "user-defined-in-image:x:1000:\n"
    "group-defined-in-image:x:50000:user-defined-in-image\n"
    "nogroup:x:65534:\n"
)
# What specs ask of curl is the content of a page, and quiet. Debian's wget crashes with a time-out.
_CURL: Final = """#!/bin/sh
for word; do :; done
exec timeout 15 wget -q -O - "$word"
"""
# Debian's busybox is without it.
_PRINTENV: Final = """#!/bin/sh
env | sed -n "s/^$1=//p" | grep .
"""


def write(
    folder: Path,
    busybox: Path,
    programs: Mapping[str, Path],
    utilities: Sequence[LayerEntry] = (),
) -> None:
    """Write the stand-ins as an OCI layout into `folder`.

    `programs` has those of `PROGRAMS`, perhaps those of `SERVERS`, and `NAMES` for `agnhost`;
    `utilities` are files of `agnhost` in place of those that stand in for them.
    """
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    contents = {name: path.read_bytes() for name, path in programs.items()}
    pair = certificates.authority("stand-ins").server("localhost", ["localhost", "127.0.0.1"])
    files = [
        LayerEntry("localhost.crt", pair.certificate_pem),
        LayerEntry("localhost.key", pair.key_pem),
        *utilities,
    ]
    made = build(busybox.read_bytes(), listed.stdout.split(), contents, files)
    images.write_layout(made, folder)


def build(
    busybox: bytes,
    applets: Iterable[str],
    programs: Mapping[str, bytes],
    files: Sequence[LayerEntry] = (),
) -> Images:
    """Build the stand-ins, `agnhost` with these `files`.

    Registry and tag do not count, only the last part of a name.
    """
    shell = images.layer(images.shell(busybox, applets))

    def make(name: str, entries: Iterable[LayerEntry], **config: Any) -> Images:
        defaults = {"Env": ["PATH=/bin"], "WorkingDir": "/"}
        return images.image(name, [shell, images.layer(entries)], {**defaults, **config})

    pages = {fish: f'{{"image": "{fish}.jpg"}}\n'.encode() for fish in ("kitten", "nautilus")}
    agnhost = {entry.path: entry for entry in (*_agnhost(programs), *files)}.values()
    made = [
        make("agnhost", agnhost, Entrypoint=["/agnhost"], Cmd=["pause"]),
        make("glibc-dns-testing", agnhost, Cmd=["/bin/sh"]),
        make("nginx", _www("index.html", _PAGE), Cmd=_WEB),
        *(make(fish, _www("data.json", page), Cmd=_WEB) for fish, page in pages.items()),
        make("nonewprivs", [LayerEntry("bin/nnp", programs["nonewprivs"], _SETUID)], Cmd=["nnp"]),
        make("nonroot", [], Cmd=["/bin/sh"], User="1234"),
    ]
    made += [
        make(name, [LayerEntry(path, programs[name], 0o755)], Entrypoint=[f"/{path}"])
        for name, path in SERVERS.items()
        if name in programs
    ]
    return reduce(or_, made)


def _agnhost(programs: Mapping[str, bytes]) -> list[LayerEntry]:
    return [
        *(
            LayerEntry(name, programs[name], 0o755)
            for name in ("agnhost", NAMES)
            if name in programs
        ),
        LayerEntry("agnhost-2", mode=0o777, kind=tarfile.SYMTYPE, link="agnhost"),
        LayerEntry("uploads", mode=0o755, kind=tarfile.DIRTYPE),
        LayerEntry("bin/curl", _CURL.encode(), 0o755),
        LayerEntry("bin/printenv", _PRINTENV.encode(), 0o755),
        LayerEntry("etc/passwd", _USERS.encode()),
        LayerEntry("etc/group", _GROUPS.encode()),
    ]


def _www(file: str, page: bytes) -> list[LayerEntry]:
    return [LayerEntry("www", mode=0o755, kind=tarfile.DIRTYPE), LayerEntry(f"www/{file}", page)]
