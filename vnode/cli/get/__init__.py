"""Defines `vnode get`: prints targets, nodes, proxy pods, sources and policies, as kubectl does."""
