"""`vnode explain pod NAME`: what happened to a pod, in order, why it is as it is, and what to do.

`collect` reads, from the source and, with the credentials of each Target's own Secret, from the
targets; `facts` is what it brings. `story` orders it into chapters and `judging` finds the present
state and its cure: both pure, so that every state has a unit test. `rendering` prints.
"""
