"""Regular expressions of users: whatever they are, they cost little, and mean what RE2 says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import computing
from vnode.api import patterns
from vnode.api.errors import ConfigError

_LABEL = "a" * 253 + "/" + "a" * 63 + "=" + "a" * 63  # as long as one can be
_SLOW = [
    "^" + "(?:.|.)" * 26 + "!",
    "(?:.|.)" * 64,
    "(a+)+$",
    "(a*)*b",
    "(?:a|aa)+$",
    ".*" * 250 + "x",
    "a?" * 100 + "a" * 100 + "b",
    "(?i)" + r"[\x01-\x{ffff}]" * 33,
    "(?:(?:.?){25}){4}x",
    ".*a.{90}b",
    "[a-z]{1,250}=[a-z]{1,200}",
]
_atoms = st.sampled_from(["a", "b", "=", r"\.", ".", "[ab]", "[^a]", r"\d", r"\w", "^", "$", r"\b"])
_expressions = st.recursive(
    _atoms,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,3}", "*?"])).map(
            lambda parts: f"(?:{parts[0]}){parts[1]}"
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("text", _SLOW)
def test_an_expression_that_makes_other_engines_backtrack_costs_milliseconds(text: str) -> None:
    patterns._compiled.cache_clear()
    with computing.within(0.5):
        pattern = patterns.compile_safe(text)
        for _ in range(10):
            pattern.matches(_LABEL)


@pytest.mark.parametrize("text", [r"\pL{250}", "(?:(?:.?){80}){4}x", r"[\pL\pN]{1,100}=\pL"])
def test_a_program_that_is_too_large_is_refused_before_it_costs_anything(text: str) -> None:
    too_large = "too large when compiled: repeat fewer times"
    with computing.within(0.1), pytest.raises(ConfigError, match=too_large):
        patterns.compile_safe(text)


@pytest.mark.parametrize(
    "text", [r"(?=a)", r"(?<!a)b", r"(a)\1", "a++", "(?>a)", "(", r"a\Z", "\ud800"]
)
def test_another_syntax_is_refused_with_the_cure(text: str) -> None:
    with pytest.raises(ConfigError, match=r"RE2's syntax .* look-around nor back references"):
        patterns.compile_safe(text)


def test_what_is_unfit_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 takes 17 ms to find that a program is too large."""
    text = "(?:.*(?:ab|ba)){200}"
    with pytest.raises(ConfigError):
        patterns.compile_safe(text)

    monkeypatch.setattr(patterns, "LabelPattern", None)
    with pytest.raises(ConfigError, match="too large when compiled"):
        patterns.compile_safe(text)


def test_what_an_expression_said_of_a_label_is_remembered_and_bounded() -> None:
    pattern = patterns.compile_safe("(?:.*(?:ab|ba)){30}x")
    labels = [("ab" * 200)[number:] for number in range(100)]
    first = [pattern.matches(label) for label in labels]
    with computing.within(0.01):
        for _ in range(10):
            assert [pattern.matches(label) for label in labels] == first

    for number in range(10_000):
        pattern.matches(f"l{number}=")

    assert len(pattern._known) <= patterns._REMEMBERED


def test_a_refused_expression_is_not_written_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ConfigError):
        patterns.compile_safe("secret(")

    assert capfd.readouterr() == ("", "")


def test_a_label_that_is_no_text_matches_or_does_not() -> None:
    assert patterns.compile_safe("=").matches("a=\ud800")
    assert not patterns.compile_safe("^b").matches("a=\ud800")


def test_an_expression_is_compiled_once() -> None:
    assert patterns.compile_safe("^app=") is patterns.compile_safe("^app=")


def test_a_bounded_number_of_expressions_is_kept() -> None:
    first = patterns.compile_safe("^first")
    for number in range(1_000):
        patterns.compile_safe(f"^{number}=")

    assert patterns.compile_safe("^first") is not first
    assert patterns._compiled.cache_info().currsize < 1_000


@given(_expressions, st.text("ab=.1-", max_size=12))
def test_expressions_that_both_know_mean_what_they_mean_in_python(text: str, label: str) -> None:
    expected = re.search(text, label) is not None
    assert patterns.compile_safe(text).matches(label) == expected
