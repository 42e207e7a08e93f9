"""Helpers for tests of code that is built on mjhost: a clock, contracts to inherit from.

Not a goal: being imported by anything but tests; importing this package imports none of its parts.
"""
