"""A plugin edited on disk while it runs: the simulation does not lose a bit of its state."""

from __future__ import annotations

import tempfile
from pathlib import Path

import mjhost
from mjhost.models import path

SOURCE = """
from mjhost import Plugin

class Push(Plugin):
    pushes = 0

    def pre_step(self, model, data):
        self.pushes += 1
        data.ctrl[0] = {torque}

    def save_state(self):
        return {{"pushes": self.pushes}}

    def load_state(self, state):
        self.pushes = state["pushes"]
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "push.py"
        file.write_text(SOURCE.format(torque="0.5"))

        with mjhost.MujocoEnv(path("pendulum"), plugins=[file]) as env:
            env.step(100)
            before = env.data.qpos.copy(), env.data.qvel.copy(), env.data.time

            file.write_text(SOURCE.format(torque="strong"))
            report = env.reload_plugins()
            print("imported, generation", report.plugin_generation.value)
            try:
                env.step(10)
            except NameError as error:
                print("undone:", error)

            file.write_text(SOURCE.format(torque="-0.5"))
            report = env.reload_plugins()
            print("carried:", *report.carried, "- failures:", len(report.failures))
            after = env.data.qpos.copy(), env.data.qvel.copy(), env.data.time
            assert before == after
            env.step(100)
            with env.plugins[0].access() as push:
                print("pushes:", push.pushes)


if __name__ == "__main__":
    main()
