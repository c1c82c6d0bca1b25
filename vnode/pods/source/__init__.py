"""Runs the source's half of a pod: from a pending proxy pod to its binding, its status and its end.

Nothing here writes to a delegate pod; chaperons are how the target is asked.
"""
