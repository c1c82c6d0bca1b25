"""Admission in the source: which pods are elected, and what becomes of them."""
