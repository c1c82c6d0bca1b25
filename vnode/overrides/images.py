"""Takes the name of an image apart, and puts it together with other parts. Pure.

The rule for registries is that of containerd and Docker: what is before the first slash is one if
it has a dot or a port, or is `localhost`. A name without one is of the default registry; what that
adds to short names (`library/`) is not added here.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

REGISTRY: Final = re.compile(
    r"([A-Za-z0-9]([-.A-Za-z0-9]{0,251}[A-Za-z0-9])?|\[[0-9a-fA-F:.]{2,45}\])(:[0-9]{1,5})?",
    re.ASCII,
)
_WORD: Final = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
REPOSITORY: Final = re.compile(f"{_WORD}(/{_WORD})*", re.ASCII)
TAG: Final = re.compile(r"[A-Za-z0-9_][-.A-Za-z0-9_]{0,127}", re.ASCII)
DIGEST: Final = re.compile(r"[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-zA-Z]{32,128}", re.ASCII)


class Image(NamedTuple):
    """The parts of an image's name; "" for those that it does not have."""

    registry: str
    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        name += f":{self.tag}" if self.tag else ""
        return name + (f"@{self.digest}" if self.digest else "")


def parse(name: str) -> Image:
    """Take a name apart; anything is a name."""
    rest, _, digest = name.partition("@")
    folder, slash, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    path = folder + slash + last
    first, slash, others = path.partition("/")
    if slash and is_registry(first):
        return Image(first, others, tag, digest)

    return Image("", path, tag, digest)


def is_registry(word: str) -> bool:
    """Tell whether the word before the first slash of a name is a registry."""
    return "." in word or ":" in word or word == "localhost"


def changed(
    name: str,
    *,
    registry: str | None = None,
    repository: str | None = None,
    tag: str | None = None,
    digest: str | None = None,
) -> str:
    """Return the name with other parts: None keeps a part, "" takes it away.

    A digest decides which image it is, whatever the tag says. So another tag takes the digest of
    the old one away, unless a digest is given, too.
    """
    image = parse(name)
    if digest is None and tag is not None:
        digest = ""

    given = {"registry": registry, "repository": repository, "tag": tag, "digest": digest}
    return str(image._replace(**{k: v for k, v in given.items() if v is not None}))
