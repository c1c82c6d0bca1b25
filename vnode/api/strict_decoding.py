"""Decodes what people write into Structs. Pure.

An unknown field is an error that lists the known ones.
"""

from __future__ import annotations

import functools
import typing
from typing import Any, TypeVar

import msgspec

from vnode.api.errors import ConfigError

S = TypeVar("S", bound=msgspec.Struct)


def decode(type_: type[S], value: Any, where: str) -> S:
    """Return `value` as a `type_`, unknown fields refused; errors begin with `where`."""
    _refuse_unknown(type_, value, where)
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from error
    except UnicodeEncodeError as error:  # YAML may spell half a character
        raise ConfigError(f"{where}: has text that is no Unicode") from error


def _refuse_unknown(type_: type[msgspec.Struct], value: Any, where: str) -> None:
    """Raise ConfigError with the known fields, before msgspec raises an error that lists none."""
    if not isinstance(value, dict):
        return

    fields = _fields(type_)
    for name, content in value.items():
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise ConfigError(f'{where}: unknown field "{name}"; known are: {known}')

        for inner in (fields[name].type, *typing.get_args(fields[name].type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                for item in content if isinstance(content, list) else [content]:
                    _refuse_unknown(inner, item, f"{where}.{name}")


@functools.cache
def _fields(type_: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the fields of a Struct by their names in YAML; to find them out takes a while."""
    return {field.encode_name: field for field in msgspec.structs.fields(type_)}
