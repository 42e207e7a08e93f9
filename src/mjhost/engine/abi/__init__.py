"""What mjhost knows about the engine's C interface, and how it is checked before it is used."""
