"""Compiles regular expressions on labels that users put into annotations and Targets.

Admiralty's are RE2's, which match in linear time; Python's can take ages. So what RE2 does not have
is refused, and so is an expression that may try too many ways to match a label. The estimate is an
upper bound: each part's number of ways multiplied along a sequence, added over alternatives.
"""

from __future__ import annotations

import importlib
import re
from typing import Any, Final

from vnode.api.errors import ConfigError

LENGTH: Final = 512  # characters
_SUBJECT: Final = 253 + 1 + 63 + 1 + 63  # the longest "prefix/name=value" of a label
_WAYS: Final = 10**8  # under a second
_parser: Final = importlib.import_module("re._parser")
_PLAIN: Final = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "RANGE", "CATEGORY"})


def compile_safe(text: str) -> re.Pattern[str]:
    """Compile the expression, for use on labels; ConfigError says why it is unfit."""
    if len(text) > LENGTH:
        raise ConfigError(f"it is longer than {LENGTH} characters: shorten it")

    try:
        pattern = re.compile(text)
        ways = _sequence(_parser.parse(text))
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"it is not a regular expression: {error}") from error

    anchored = text.startswith(("^", r"\A"))
    if ways * (1 if anchored else _SUBJECT) > _WAYS:
        raise ConfigError(
            "it could take ages to match: no repetition inside a repetition, fewer * and +, and "
            "begin it with ^"
        )

    return pattern


def _sequence(parts: Any) -> int:
    ways: int = 1
    for operator, argument in parts:
        ways = min(ways * _single(str(operator), argument), _WAYS * 2)

    return ways


def _single(operator: str, argument: Any) -> int:
    if operator in _PLAIN:
        return 1

    if operator in ("MAX_REPEAT", "MIN_REPEAT"):
        most = min(int(argument[1]), _SUBJECT)
        ways = _sequence(argument[2])
        if ways > 1:
            return min(int(ways ** min(most, 30)), _WAYS * 2)

        return max(most - int(argument[0]) + 1, 1)

    if operator == "BRANCH":
        return sum(_sequence(branch) for branch in argument[1])

    if operator == "SUBPATTERN":
        return _sequence(argument[3])

    raise ConfigError("it looks around, refers back or is possessive, which RE2 does not have")
