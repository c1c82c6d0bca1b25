"""The images of the conformance suite that are made here: stand-ins, utilities, servers."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

import yaml

from hack.fleetlib.conformance import (
    standins,
    utilities,
)
from hack.fleetlib.realnode import images


def test_a_stand_in_has_a_shell_below_what_is_its_own(tmp_path: Path):
    programs = {"agnhost": b"the host", "nonewprivs": b"the asker"}
    images.write_layout(standins.build(b"box", ["sh"], programs), tmp_path / "layout")
    made = images.from_layout(tmp_path / "layout")

    assert {"agnhost", "nginx", "nonewprivs", "nonroot"} <= made.manifests.keys()
    assert files(made, "agnhost")["agnhost"].content == b"the host"
    assert files(made, "nginx")["bin/sh"].link == "busybox"
    assert files(made, "nonewprivs")["bin/nnp"].mode & 0o4000
    configuration = blob_of(made, "agnhost", "config")
    assert b'"Entrypoint": ["/agnhost"]' in configuration


def test_utilities_take_the_place_of_what_stands_in_for_them():
    programs = {"agnhost": b"the host", "nonewprivs": b"the asker"}
    made = standins.build(b"box", ["sh"], programs, [images.LayerEntry("bin/curl", b"real", 0o755)])
    assert files(made, "agnhost")["bin/curl"].content == b"real"
    assert files(standins.build(b"box", ["sh"], programs), "agnhost")["bin/curl"].content != b"real"


def test_servers_have_images_where_their_programs_are_given():
    programs = {"agnhost": b"the host", "nonewprivs": b"the asker", "etcd": b"a store"}
    made = standins.build(b"box", ["sh"], programs)
    assert files(made, "etcd")["usr/local/bin/etcd"].content == b"a store"
    assert "sample-apiserver" not in made.manifests


def test_agnhost_serves_names_where_it_is_given_the_server():
    programs = {"agnhost": b"the host", "nonewprivs": b"the asker"}
    named = {**programs, standins.NAMES: b"names"}
    found = files(standins.build(b"box", ["sh"], named), "agnhost")
    assert (found["agnhost"].content, found["coredns"].content) == (b"the host", b"names")
    assert "coredns" not in files(standins.build(b"box", ["sh"], programs), "agnhost")


def test_a_program_brings_the_libraries_that_it_is_linked_to():
    listed = """\tlinux-vdso.so.1 (0x00007ffe4)
\tlibbsd.so.0 => /lib/x86_64-linux-gnu/libbsd.so.0 (0x00007f1)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f2)
"""
    libraries = ["/lib/x86_64-linux-gnu/libbsd.so.0", "/lib64/ld-linux-x86-64.so.2"]
    assert utilities.linked(listed) == libraries


def blob_of(made: images.Images, name: str, part: str) -> bytes:
    manifest = yaml.safe_load(made.manifests[name].content)
    return made.blobs[manifest[part]["digest"]].content


def files(made: images.Images, name: str) -> dict[str, images.LayerEntry]:
    """Return what is in the layers of an image, the upper ones over the lower."""
    found = {}
    for described in yaml.safe_load(made.manifests[name].content)["layers"]:
        content = made.blobs[described["digest"]].content
        with tarfile.open(fileobj=BytesIO(content)) as archive:
            for one in archive:
                opened = archive.extractfile(one) if one.isreg() else None
                data = opened.read() if opened else b""
                found[one.name] = images.LayerEntry(one.name, data, one.mode, link=one.linkname)
    return found
