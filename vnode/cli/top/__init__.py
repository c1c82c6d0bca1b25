"""Defines `vnode top`: shows the capacity of targets, the requests of pods, and their usage."""
