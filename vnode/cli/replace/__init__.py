"""Defines `vnode replace-target`: puts another cluster in the place of a target, under its name.

`command` has the flags, `replace` checks both clusters, `former` finds out which cluster the Target
leads to so far, `steps` decides from that, pure, what is left to do, and `replacing` does it.
Nothing is remembered between two runs: what is left is read off the clusters, so that a run that
was ended anywhere is taken up by the next.
"""
