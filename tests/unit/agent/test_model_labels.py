"""Which labels of nodes tell models apart is a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnode.agent import config
from vnode.api.errors import ConfigError
from vnode.api.rows import MODEL_LABELS


def load(tmp_path: Path, text: str) -> tuple[str, ...]:
    file = tmp_path / "agent.yaml"
    file.write_text(f"apiVersion: vnode.dev/v1alpha1\nkind: AgentConfiguration\n{text}")
    return config.load(file).model_labels


def test_a_list_replaces_the_default(tmp_path: Path) -> None:
    assert load(tmp_path, "") == MODEL_LABELS
    assert load(tmp_path, "modelLabels: [example.com/model]") == ("example.com/model",)
    assert load(tmp_path, "modelLabels: []") == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[gpu model]", "modelLabels has 'gpu model', which cannot be the key of a label"),
        ("[a, b, a]", "modelLabels names a key twice"),
        (str([f"k{number}" for number in range(17)]), "modelLabels has over 16 keys: name fewer"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        load(tmp_path, f"modelLabels: {text}")


def test_which_pods_are_kept_together_is_a_setting_too(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    head = "apiVersion: vnode.dev/v1alpha1\nkind: AgentConfiguration\n"
    file.write_text(f"{head}keepTogether: []")
    assert config.load(file).keep_together == ()
    file.write_text(f"{head}keepTogether: [a b]")
    with pytest.raises(ConfigError, match="keepTogether has 'a b', which cannot be the key"):
        config.load(file)
