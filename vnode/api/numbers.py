"""Reads whole numbers that others wrote. Pure."""

from __future__ import annotations

_DIGITS = 18  # those of any number of 64 bits


def natural(text: str, *, digits: int = _DIGITS) -> int | None:
    """Return a number from 0 that is written by so many digits at most; None if it is none.

    `str.isdigit` passes characters that `int` refuses, such as a superscript two, and texts of more
    than 4,300 digits, which `int` refuses as well.
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= digits
    return int(text) if is_number else None
