"""Plugins that come with mjhost; each is one entry of the group ``mjhost.plugins``.

Owns: what sensors, controllers and other parts of a robot's host are usually needed for, over
records and streams.
Not a goal: a transport.
"""
