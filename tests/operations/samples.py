"""A request for every operation that the model can answer."""

from __future__ import annotations

from typing import Any

from mjhost import MujocoEnv
from mjhost.operations import CheckpointStore

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="arm">
      <joint name="hinge" axis="0 1 0"/>
      <geom name="rod" size=".05" pos=".3 0 0"/>
    </body>
    <body name="ball" pos="0 0 1"><freejoint/><geom name="round" size=".1"/></body>
    <body name="target" mocap="true" pos="1 0 1"/>
  </worldbody>
  <equality><weld name="hold" body1="ball" body2="target"/></equality>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor>
  <keyframe><key name="up" qpos="3.1 0 0 1 1 0 0 0" ctrl="0.5"/></keyframe>
</mujoco>
"""

WITHOUT_MODEL = {"set_pending_runtime_options"}
WITHOUT_ENV = {"runtime_option_table", "checkpoints", "delete_checkpoint"}

REQUESTS: dict[str, dict[str, Any]] = {
    "info": {},
    "load": {"source": MODEL, "initial_state": {"hinge": {"qpos": 0.1}}},
    "reload": {
        "options": "keep",
        "keep_state": True,
        "initial_state": {"hinge": {"qvel": 1}},
    },
    "reset": {"keyframe": "up", "model": True},
    "clear_fault": {},
    "step": {"n": 3, "timeout": 5},
    "advance": {"seconds": 0.01},
    "cancel_steps": {},
    "pause": {},
    "request_pause": {},
    "resume": {},
    "stop_at": {"steps": 100, "time": 5.0},
    "set_realtime": {"factor": 2},
    "measured_realtime": {},
    "names": {"kind": "joint"},
    "body_states": {"names": ["world", "ball"], "frame": "body"},
    "set_body_state": {
        "name": "ball",
        "pos": [0, 0, 2],
        "quat": [0, 1, 0, 0],
        "linear": [1, 0, 0],
        "angular": [0, 0, 1],
    },
    "joint_states": {"names": ["hinge"]},
    "set_joint_states": {
        "joints": {"hinge": {"qpos": 0.1, "qvel": [2]}, "#1": {"qvel": [0, 0, 0, 1, 0, 0]}},
        "sync_mocap": True,
    },
    "ctrl": {},
    "set_ctrl": {"controls": {"motor": 0.5}},
    "mocap_states": {},
    "set_mocap": {"name": "target", "pos": [0, 1, 1]},
    "sync_mocap": {"names": ["target"]},
    "sensors": {},
    "geom_properties": {"name": "round"},
    "set_geom_properties": {"name": "round", "type": "box", "size": [0.1, 0.2, 0.3], "mass": 2},
    "body_inertial": {"name": "arm"},
    "set_body_inertial": {"name": "arm", "mass": 2, "inertia": [0.1, 0.1, 0.1]},
    "equality_state": {"name": "hold"},
    "set_equality": {"name": "hold", "active": False, "pos": [0, 0, 0.1]},
    "gravity": {},
    "set_gravity": {"gravity": [0, 0, -1.62]},
    "apply_wrench": {"body": "ball", "force": [1, 0, 0], "duration": 0.1, "name": "push"},
    "clear_wrench": {"body": "ball", "name": "push"},
    "wrench": {"name": "ball"},
    "checkpoint": {"name": "new", "replace": True},
    "restore": {"name": "kept"},
    "checkpoints": {},
    "delete_checkpoint": {"name": "old"},
    "runtime_options": {},
    "apply_runtime_options": {"patch": {"timestep": 0.001, "gravity": [0, 0, -1.62]}},
    "set_pending_runtime_options": {"patch": {"solver": "CG"}},
    "runtime_option_table": {},
    "plugin_statistics": {},
    "plugin_diagnostics": {},
    "plugin_load_report": {},
    "reload_plugins": {},
    "forward": {},
    "inverse": {},
    "linearize": {"eps": 1e-5, "centered": False},
}


def filled_store(directory) -> CheckpointStore:
    """A store with the checkpoints that the requests name."""
    store = CheckpointStore(directory)
    with MujocoEnv(MODEL) as env:
        env.step(4)
        for name in ("kept", "old"):
            store.save(name, env.checkpoint)
    return store
