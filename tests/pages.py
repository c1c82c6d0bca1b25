"""The pages of the documentation, taken apart: blocks, the commands in them, and prose."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.kit import ROOT

PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/README.md")]
)
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_ID = re.compile(r'<a id="([^"]+)">')
_FILE = re.compile(r"# (\S+\.yaml)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is that of its first line of text.

    `section` is the heading above it, "" before the first.
    """

    page: str
    section: str
    number: int
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"

    @property
    def file(self) -> str:
        """The name of the file that a reader makes of it, "" if it does not begin with one."""
        found = _FILE.match(self.text)
        return found[1] if found else ""

    def commands(self) -> Iterator[Command]:
        """Yield what a shell runs, one by one; nothing where the block is not for a shell."""
        if self.language != "sh":
            return

        begun: list[str] = []
        for number, line in enumerate(self.text.splitlines(), self.line):
            if begun or line.partition("#")[0].strip():
                begun.append(line)

            if begun and not line.endswith("\\"):
                yield Command(self, number - len(begun) + 1, "\n".join(begun))
                begun = []


@dataclass(frozen=True)
class Command:
    """One command, as it is printed, and the line of the page where it begins."""

    block: Block
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.block.page}, block {self.block.number}, line {self.line}: {self.joined}"

    @property
    def joined(self) -> str:
        """The command on one line."""
        return self.text.replace("\\\n", " ")


def name(page: Path) -> str:
    """Return its path in the repository."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page from top to bottom, also those within lists."""
    text = page.read_text()
    section, end = "", 0
    for number, found in enumerate(_FENCE.finditer(text), 1):
        section = [section, *_HEADING.findall(text, end, found.start())][-1]
        end = found.end()
        line = text.count("\n", 0, found.start(3)) + 1
        yield Block(name(page), section, number, line, found[2], textwrap.dedent(found[3]))


def all_blocks() -> Iterator[Block]:
    for page in PAGES:
        yield from blocks(page)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return what a link can lead to in a page: its headings, as forges name them, and its ids."""
    text = prose(page)
    named = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", "\n".join(_HEADING.findall(text)))
    words = (re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()) for line in named.splitlines())
    return frozenset({word.replace(" ", "-") for word in words} | set(_ID.findall(text)))


def prose(page: Path) -> str:
    """Return the page without its blocks."""
    return _FENCE.sub("", page.read_text())
