"""Finds what of a source's own a virtual node may disturb: `vnode connect` tells it before there is
one, and `vnode doctor` afterwards.

`own_objects` reads them; `checks`, which is pure, makes findings of them.
"""
