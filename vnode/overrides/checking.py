"""Checks a decoded rule as far as that is possible without a pod. Pure.

What is refused here is refused when the policy is written, with a condition on it, and not later
for each pod.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from vnode.api import names, quantities
from vnode.api.errors import ConfigError
from vnode.overrides import guard, images, json_patch
from vnode.overrides.json_patch import Operation
from vnode.overrides.rules import (
    MOST_ENTRIES,
    EnvironmentOverride,
    ImageOverride,
    OverrideRule,
    PatchOperation,
    ResourcesOverride,
    WordsOverride,
)

_PATH: Final = 512  # characters of a JSON pointer
_VARIABLE: Final = re.compile(r"[^=\x00]{1,1024}")
_NEED_VALUE: Final = ("add", "replace", "test")
_NEED_ORIGIN: Final = ("copy", "move")
_REACHED: Final = "patches reach metadata.labels, metadata.annotations and spec"


def check(rule: OverrideRule) -> None:
    """Check one rule; ConfigError names the field and the cure."""
    if not any(getattr(rule, f) not in (None, [], {}) for f in rule.__struct_fields__[1:]):
        raise ConfigError("it changes nothing: give it an image, a patch or the like")

    for field in ("image", "command", "args", "env", "resources", "tolerations", "patches"):
        if len(getattr(rule, field) or ()) > MOST_ENTRIES:
            raise ConfigError(f"{field} has over {MOST_ENTRIES} entries: write another rule")

    for index, image in enumerate(rule.image or ()):
        _within(f"image[{index}]", _image(image))

    for field in ("command", "args"):
        for index, words in enumerate(getattr(rule, field) or ()):
            _within(f"{field}[{index}]", _words(words))

    for index, env in enumerate(rule.env or ()):
        _within(f"env[{index}]", _env(env))

    for index, resources in enumerate(rule.resources or ()):
        _within(f"resources[{index}]", _resources(resources))

    _within("labels", guard.label_problems(rule.labels or {}))
    _within("annotations", guard.annotation_problems(rule.annotations or {}))
    _within("runtimeClassName", _class_name(rule.runtime_class_name))
    for index, patch in enumerate(rule.patches or ()):
        _within(f"patches[{index}]", _patch(patch))


def operation(patch: PatchOperation) -> Operation:
    """Return what an entry of `patches` does; ConfigError for a path that is none."""
    value = None if patch.value is msgspec.UNSET else patch.value
    return Operation(
        patch.op, json_patch.pointer(patch.path), value, json_patch.pointer(patch.from_ or "")
    )


def _within(field: str, problems: Iterator[str]) -> None:
    for problem in problems:
        raise ConfigError(f"{field}: {problem}")


def _containers(names_: Collection[str] | None) -> Iterator[str]:
    if names_ is not None and not names_:
        yield "containers is empty: leave it out for all containers"


def _image(image: ImageOverride) -> Iterator[str]:
    yield from _containers(image.containers)
    registry, repository = image.registry, image.repository
    if all(part is None for part in (registry, repository, image.tag, image.digest)):
        yield "give it a registry, repository, tag or digest"

    if registry and not (images.REGISTRY.fullmatch(registry) and images.is_registry(registry)):
        yield 'registry is no host: write it with a dot or a port, such as "mirror.example:5000"'

    if repository is not None:
        first, slash, _ = repository.partition("/")
        if not images.REPOSITORY.fullmatch(repository) or len(repository) > names.NAME_LIMIT:
            yield 'repository is none: write it as "team/web", in lower case'
        elif slash and images.is_registry(first):
            yield f'repository begins with a registry: set registry to "{first}"'

    if image.tag and not images.TAG.fullmatch(image.tag):
        yield "tag is none: up to 128 letters, digits, dots, dashes and underscores"

    if image.digest and not images.DIGEST.fullmatch(image.digest):
        yield 'digest is none: write it as "sha256:...", with 64 digits'


def _words(words: WordsOverride) -> Iterator[str]:
    yield from _containers(words.containers)
    if (words.set_ is None) == (words.append is None):
        yield "give it either set or append"


def _env(env: EnvironmentOverride) -> Iterator[str]:
    yield from _containers(env.containers)
    set_, removed = env.set_ or [], env.remove or []
    if not set_ and not removed:
        yield "give it variables to set or to remove"

    names_, taken = [variable.name for variable in set_], set(removed)
    for name in names_:
        if not _VARIABLE.fullmatch(name):
            yield "a variable needs a name, without an equals sign"

        if name in taken:
            yield f'"{name[:63]}" is there twice: set or remove it once'

        taken.add(name)

    for variable in set_:
        if variable.value is not None and variable.value_from is not None:
            yield f'"{variable.name[:63]}" has both value and valueFrom: take one of them'


def _resources(resources: ResourcesOverride) -> Iterator[str]:
    yield from _containers(resources.containers)
    amounts: dict[str, dict[str, int]] = {}
    for field in ("requests", "limits"):
        found = amounts[field] = {}
        for name, quantity in (getattr(resources, field) or {}).items():
            try:
                found[name] = quantities.nano(quantity)
            except ConfigError as error:
                yield f"{field}.{name[:63]}: {error}"
                return

            if found[name] < 0:
                yield f"{field}.{name[:63]} is less than nothing"

    if not any(amounts.values()):
        yield "give it requests or limits"

    for name, amount in amounts["requests"].items():
        if amount > amounts["limits"].get(name, amount):
            yield f"{name[:63]}: the request is more than the limit"


def _class_name(name: str | None) -> Iterator[str]:
    if name and not names.SUBDOMAIN.fullmatch(name):
        yield "it cannot be the name of a RuntimeClass"


def _patch(patch: PatchOperation) -> Iterator[str]:
    if patch.op in _NEED_VALUE and patch.value is msgspec.UNSET:
        yield f"{patch.op} needs a value"

    if (patch.op in _NEED_ORIGIN) != (patch.from_ is not None):
        yield "from is for copy and move, and they need it"

    for text in (patch.path, patch.from_):
        if text is None:
            continue

        if len(text) > _PATH:
            yield f"the path has over {_PATH} characters"
            return

        path = json_patch.pointer(text)
        if not _reaches(path):
            yield f'"{text[:63]}" is out of reach: {_REACHED}'
            return

    written = [patch.path] if patch.op != "test" else []
    written += [patch.from_] if patch.op == "move" and patch.from_ else []
    for text in written:
        yield from guard.path_problems(json_patch.pointer(text))


def _reaches(path: json_patch.Pointer) -> bool:
    if path[:1] == ("spec",):
        return len(path) > 1

    return len(path) > 1 and path[0] == "metadata" and path[1] in ("labels", "annotations")
