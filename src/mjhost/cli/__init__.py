"""The command line: ``mjhost run``, ``demo``, ``plugins``, ``check``, ``options`` and ``doctor``.

An adapter: every command parses its arguments, calls the env, and prints. ``docs/cli.md`` has the
keys, the records of ``--json`` and the exit statuses.
"""
