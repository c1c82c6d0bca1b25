"""Proxy pods in the source, chaperons and delegate pods in the target, and what both share."""
