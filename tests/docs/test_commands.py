"""Every command of the documentation works, page by page, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import pages
from tests.docs.left_out import is_left_out
from tests.docs.shell import CommandResult, Shell
from tests.kit import ROOT
from tests.pages import PAGES, Block, Command

INTERRUPTED = 130
LOOK = re.compile(r"`(kubectl\s(?:-\S+\s[^\s`]+\s)*get\s(?:(?!\.\.\.)[^`|])+)`")
GOES_ON = re.compile(r"vnode (dashboard|get .*--watch)")


def commands(page: Path) -> list[Command]:
    return [one for block in pages.blocks(page) for one in block.commands()]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not all(map(is_left_out, commands(page)))],
    ids=pages.name,
)
def test_the_commands_of_a_page_work_from_top_to_bottom(
    page: Path, reader: Shell, stands_for: dict[str, str]
) -> None:
    shown = section = ""
    for block in pages.blocks(page):
        if block.file:
            (reader.folder / block.file).write_text(block.text)
        elif block.language == "text" and block.section == section:
            check_output(block, shown)
        elif block.language == "sh":
            shown, section = run(block, reader, stands_for), block.section


@pytest.mark.parametrize("page", [ROOT / "docs" / "troubleshooting.md"])
def test_looks_that_are_named_in_the_text_work(reader: Shell, stands_for: dict[str, str]) -> None:
    for page in PAGES:
        for text in LOOK.findall(pages.prose(page)):
            done = reader.run(replaced(" ".join(text.split()), stands_for))
            assert done.code == 0, f"{pages.name(page)}: {text}\n{done.output}"


def run(block: Block, reader: Shell, stands_for: dict[str, str]) -> str:
    """Return all that the commands of a block write."""
    shown = ""
    for command in block.commands():
        if not is_left_out(command):
            done = outcome(reader, replaced(command.text, stands_for))
            assert done.code == 0, f"{command}\nexited with {done.code}:\n{done.output}"
            shown += done.output

    return shown


def outcome(reader: Shell, text: str) -> CommandResult:
    if not GOES_ON.match(text):
        return reader.run(text)

    done = reader.run_until_it_speaks(text)
    return CommandResult(0, done.output) if done.code == INTERRUPTED else done


def replaced(text: str, stands_for: dict[str, str]) -> str:
    words = "|".join(rf"(?<!\w){re.escape(word)}" for word in stands_for)
    return re.sub(words, lambda found: stands_for[found[0]], text)


def check_output(block: Block, shown: str) -> None:
    """Check that the output of the commands before it, of its section, shows each line of a block.

    `...` in the block stands for anything, and columns may be of any width.
    """
    for number, line in enumerate(block.text.splitlines(), block.line):
        words = r"\s+".join(re.escape(word) for word in line.split())
        wanted = words.replace(re.escape("..."), r".*")
        assert re.search(wanted, shown), f"{block}, line {number}: no {line!r} in\n{shown}"
