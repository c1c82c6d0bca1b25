from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.kube.store import Store

names = st.sampled_from("abcd")
changes = st.lists(
    st.tuples(names, st.one_of(st.none(), st.sets(st.sampled_from("xyz")))), max_size=40
)


def tags(obj):
    return obj["tags"]


@given(changes)
def test_indexes_always_show_what_is_stored(steps):
    store, model = Store({"tag": tags}), {}
    for name, values in steps:
        if values is None:
            assert store.pop(f"ns/{name}") is model.pop(f"ns/{name}", None)
        else:
            obj = {"metadata": {"name": name, "namespace": "ns"}, "tags": sorted(values)}
            assert store.put(obj) is model.get(f"ns/{name}")
            model[f"ns/{name}"] = obj

        assert {key: store.get(key) for key in store} == model
        for value in "xyz":
            expected = [model[key] for key in sorted(model) if value in model[key]["tags"]]
            assert store.by_index("tag", value) == expected


@given(changes)
def test_an_emptied_store_keeps_nothing_in_its_indexes(steps):
    store = Store({"tag": tags})
    for name, values in steps:
        store.put({"metadata": {"name": name}, "tags": values or ()})

    for name in "abcd":
        store.pop(name)

    assert len(store) == 0
    assert store._indexes == {"tag": {}}


def test_of_many_with_a_value_some_are_returned():
    store = Store({"tag": tags})
    for name in "abcd":
        store.put({"metadata": {"name": name}, "tags": "x"})

    assert len(store.by_index("tag", "x", 3)) == 3
    assert store.by_index("tag", "x", 4) == store.by_index("tag", "x")
    assert store.by_index("tag", "y", 4) == []
