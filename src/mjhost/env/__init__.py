"""The env: the one owner of model, data and stepping."""

from mjhost.env.environment import MujocoEnv

__all__ = ["MujocoEnv"]
