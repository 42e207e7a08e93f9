"""State by name: pure functions of a model and its data.

What is asked for is resolved, validated and planned against the model; what is written is written
by the plan; what is read is copied. Nothing here steps, locks or knows an env: it takes the step
boundary, calls these functions and refreshes what derives from the state. ``docs/state.md`` is the
page for users.

Conventions: a *plan* is made from what the caller gave and raises for everything that is wrong with
it, before a byte is written; calling the plan writes it and cannot fail. A record is a frozen
msgspec struct whose arrays are copies that cannot be written to. Messages name the object and the
argument.
"""
