"""Defines `vnode connect`: lets the pods of one cluster, the source, run in another, the target.

`command` has the flags, `connect` computes the desired connection from them, `desired` builds its
objects, pure, and `connector` creates them, step by step.
"""
