"""Targets, their credentials and connections, and the rights that Sources grant."""
