"""No text from a cluster becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.dashboard import markup
from vnode.dashboard.markup import join, tag

HOSTILE = st.text() | st.sampled_from(
    ["<script>alert(1)</script>", "\"' onload=x", "</title><svg/onload=x>", "&lt;", "]]>", "\ud800"]
)


class Reader(HTMLParser):
    """What a browser makes of a page: elements, attributes, text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: object) -> Reader:
    reader = Reader()
    reader.feed(str(html))
    reader.close()
    return reader


@given(HOSTILE, HOSTILE)
def test_text_stays_text_wherever_it_stands(inside: str, value: str) -> None:
    found = read(tag("p", inside, tag("b", inside), title=value))
    assert found.elements == ["p", "b"]
    assert [name for name, _value in found.attributes] == ["title"]


@given(st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=markup.MAX_LENGTH))
def test_what_can_be_seen_is_shown_as_it_is(text: str) -> None:
    found = read(tag("p", text, title=text))
    assert found.text == text
    assert found.attributes == [("title", text)]


@given(HOSTILE)
def test_a_page_is_always_bytes(text: str) -> None:
    assert markup.document(tag("body", text), lang=text).startswith(b"<!doctype html>\n<html ")


@pytest.mark.parametrize("unseen", ["\u202e", "\u2066", "\u200b", "\x00", "\x1b", "\ud800"])
def test_characters_that_deceive_are_replaced(unseen: str) -> None:
    assert markup.shown(f"a{unseen}b") == "a\ufffdb"


def test_a_text_without_end_is_cut() -> None:
    assert len(markup.shown("x" * 1_000_000)) == markup.MAX_LENGTH + 1


@pytest.mark.parametrize("name", ["style", "onclick", "on_load"])
def test_what_the_policy_forbids_cannot_be_written(name: str) -> None:
    with pytest.raises(AssertionError, match="against the policy"):
        tag("p", **{name: "x"})


def test_only_names_are_elements_and_attributes() -> None:
    with pytest.raises(AssertionError):
        tag("p><script")

    with pytest.raises(AssertionError):
        tag("p", **{"a b": "c"})


def test_markup_passes_and_nothing_is_left_out_for_none_and_false() -> None:
    inside = join([tag("b", "x"), None, " & "])
    html = tag("input", disabled=True, hidden=False, value=None)
    assert str(tag("p", inside, class_="y")) == '<p class="y"><b>x</b> &amp; </p>'
    assert str(html) == "<input disabled>"
