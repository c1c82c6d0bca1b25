"""Text of clusters does not command a terminal, nor make lines of its own."""

from __future__ import annotations

import ast
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import vnode
from vnode.api import errors, scheduled_condition, visible
from vnode.cli import tables, terminal
from vnode.cli.doctor.findings import Finding, Level, lines
from vnode.cli.explain import rendering
from vnode.cli.tables import Column
from vnode.insight.story import Story
from vnode.insight.verdicts import PodState, Verdict
from vnode.targets import conditions

TITLE = "\x1b]0;pwned\x07"
HOSTILE = f"a{TITLE}\x1b[2J\x9b2J\u202eb\r\nReady  yes"
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = st.text() | st.just(HOSTILE) | st.text(st.sampled_from("\x1b\x9b[]m32;\n\t\r\x07\u2066 a"))


@given(WORDS)
def test_a_line_is_one_line_that_is_shown_as_it_is(words: str) -> None:
    assert not HIDDEN.search(visible.line(words))
    assert "\n" not in visible.line(words)
    assert visible.is_visible(visible.text(words))


def test_a_text_keeps_its_lines_and_what_is_visible() -> None:
    assert visible.text("é\n\tb \U0001f600") == "é\n\tb \U0001f600"
    assert visible.text("a\x1b[2Jb") == "a\ufffd[2Jb"


@pytest.mark.parametrize("colours", [False, True])
@given(words=WORDS)
def test_what_a_command_prints_holds_no_control_but_our_colours(colours: bool, words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr(terminal, "has_colour", lambda: colours)
        patch.setattr("click.echo", lambda text, **_kwargs: printed.append(text))
        terminal.say(terminal.styled("ours", terminal.GOOD, bold=True) + words)

    assert printed[0].startswith("\x1b[32m\x1b[1mours\x1b[0m" if colours else "ours")
    rest = re.sub(r"\x1b\[(?:0|1|3[123]|90)m", "", printed[0])
    assert not HIDDEN.search(rest.replace("\t", ""))


def test_a_screen_that_is_redrawn_holds_none_either(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.redraw(HOSTILE)
    assert TITLE not in capsys.readouterr().out


def test_a_cell_of_a_table_makes_no_line() -> None:
    [_heading, line] = tables.lines([Column("A", str)], [HOSTILE])
    assert not HIDDEN.search(line)
    assert "\n" not in line


@pytest.mark.parametrize(("format_", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_a_document_escapes_what_is_invisible_and_loses_nothing(format_: str, load: object) -> None:
    obj = {"message": HOSTILE, "more": "é"}
    text = tables.document([obj], format_, single=True)
    assert not HIDDEN.search(text)
    assert load(text) == obj  # type: ignore[operator]


def test_what_a_target_says_makes_no_line_of_a_diagnosis_or_a_story() -> None:
    found = lines([Finding("a", "targets", Level.FAIL, HOSTILE, HOSTILE)])
    assert len("\n".join(found).splitlines()) == 3
    verdict = Verdict(PodState.FAILED, HOSTILE, (HOSTILE,))
    story = rendering.as_text(Story("a/b", "Pending", (), verdict), NOW)
    assert "\nReady  yes" not in story


def test_what_an_api_server_says_is_one_visible_line_everywhere() -> None:
    error = errors.from_status(403, "Forbidden", HOSTILE)
    condition = conditions.ready({}, False, "Denied", HOSTILE, NOW)
    refused = scheduled_condition.rejected(HOSTILE)
    status = {"conditions": [{**refused, "message": HOSTILE}]}
    for words in (str(error), error.message, condition["message"], refused["message"]):
        assert visible.line(words) == words

    assert scheduled_condition.rejection(status) == refused["message"]


def test_only_one_module_of_the_commands_prints() -> None:
    root = Path(vnode.__file__).parent
    printing = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute | ast.Name)
        and (getattr(node, "attr", "") in ("echo", "secho") or getattr(node, "id", "") == "print")
    ]
    assert {entry.split(":")[0] for entry in printing} == {"cli/terminal.py"}
