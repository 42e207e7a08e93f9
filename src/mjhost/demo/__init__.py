"""The three example plugins of ``mjhost demo``, which are also those of ``docs/plugins.md``.

Each is one file that needs nothing but ``mjhost`` and numpy: copy it to begin a plugin of your own.
``plugins.yaml`` is the list that ``mjhost demo`` loads; since it names files, an edit of one takes
effect under ``mjhost demo --watch``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mjhost.demo.energy_monitor import EnergyMonitor
from mjhost.demo.joint_impedance import JointImpedance
from mjhost.demo.wind import Wind

PLUGIN_FILE: Final = Path(__file__).with_name("plugins.yaml")
"""The list of them with the configuration of the demo."""

__all__ = ["PLUGIN_FILE", "EnergyMonitor", "JointImpedance", "Wind"]
