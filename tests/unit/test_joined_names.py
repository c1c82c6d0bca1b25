"""A name that is made of two others by a dash or dot can be read in two ways: each is known here.

Objects of one kind whose names collide overwrite each other, and a tenant can choose names so that
they do. `vnode.api.names.from_parts` adds a hash where that could be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.unit.test_conventions import RELEASED, trees

ONE_READING: Final = {
    "vnode/api/authors.py": {"{time}.{signature}": "a time has no dot"},
    "vnode/api/kinds.py": {"{self.plural}.{self.group}": "a plural has no dot"},
    "vnode/api/names.py": {"{joined}-{digest}": "the digest is of all parts"},
    "vnode/api/service_tokens.py": {"{TOKEN}-{_digest(...)}": "one constant"},
    "vnode/api/strict_decoding.py": {"{where}.{name}": "a path in a message"},
    "vnode/dashboard/overview.py": {"flow-{target}-{stage.value}": "stages have no dash"},
    "vnode/following/remote_informers.py": {
        "{kind.plural}-{link.node_name}": "the name of a task",
        "{self._name}-{namespace}": "the name of a task",
    },
    "vnode/issuing/request.py": {"vnode-issued-{readable}-{digest}": "the digest is of all parts"},
    "vnode/kube/events.py": {"{...}.{digest}": "the digest is of all parts"},
    "vnode/kube/exec_runs.py": {"{os.getpid(...)}.{next(...)}": "two numbers"},
    "vnode/kueue/judging.py": {
        "{objects.name(...)}-{each.name}": "the name of a pod that is not created, in a message"
    },
    "vnode/placement/decisions/followed.py": {
        "{kind.resource}-{namespace}": "resources have no dash"
    },
    "vnode/placement/decisions/published.py": {"{where.name}-{index}": "an index is a number"},
    "vnode/planning/workload_key.py": {"{kind}.{group}": "a kind has no dot"},
    "vnode/pods/source/proxy_events.py": {"{...}.{digest}": "the digest is of all parts"},
    "vnode/runtime/certs/webhook_call.py": {
        "{service.get(...)}.{service.get(...)}.svc": "neither has a dot"
    },
    "vnode/runtime/lease_identity.py": {
        "{socket.gethostname(...)}_{_pid_namespace(...)}_{os.getpid(...)}": "no host name has _",
        "{pod}_{os.getpid(...)}": "no pod has _",
    },
    "vnode/scores/published.py": {
        "{NAME}-{target.node_name}": "one constant",
        "{...}-{digest}": "the digest is of all parts",
    },
    "vnode/targets/connection.py": {"{informer.kind.plural}-{link.node_name}": "a task's name"},
    "vnode/targets/named_objects.py": {"{self._kind.kind.lower(...)}-{name}": "a task's name"},
}
"""By module why a joined name is nothing that two objects can have."""


def shown(node: ast.expr) -> str:
    """Return the form of an f-string's part, without what a call is given."""
    if isinstance(node, ast.Constant):
        return str(node.value)

    inner = node.value if isinstance(node, ast.FormattedValue) else node
    if isinstance(inner, ast.Call):
        name = ast.unparse(inner.func)
        return f"{{{name}(...)}}" if name.isascii() and "(" not in name else "{...}"

    return f"{{{ast.unparse(inner)}}}" if isinstance(inner, ast.Name | ast.Attribute) else "{...}"


def joined_names(tree: ast.Module) -> Iterator[str]:
    """Yield the f-strings that join two values by a single character and are no sentences."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = node.values
            literal = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
            between = zip(parts, parts[1:], parts[2:], strict=False)
            is_joined = any(
                isinstance(middle, ast.Constant)
                and middle.value in ("-", ".", "_")
                and not isinstance(first, ast.Constant)
                and not isinstance(last, ast.Constant)
                for first, middle, last in between
            )
            if is_joined and " " not in literal:
                yield "".join(map(shown, parts))


def test_each_name_that_is_joined_can_be_read_in_one_way() -> None:
    found = {path: set(joined_names(tree)) for path, tree in trees(*RELEASED)}
    known = {path: set(names) for path, names in ONE_READING.items()}
    assert {path: names for path, names in found.items() if names} == known


def test_a_new_one_is_found() -> None:
    tree = ast.parse('f"{namespace}-{name}"; f"{a}/{b}"; f"in {a}.{b} is {c}"; f"{a}-x"')
    assert list(joined_names(tree)) == ["{namespace}-{name}"]
