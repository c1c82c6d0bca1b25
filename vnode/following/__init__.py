"""Copies in targets of the objects that pods refer to."""
