"""A robot from its description: what was guessed, a pose to start from, and two of them at once."""

from mjhost import MujocoEnv, description

ARM = """
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0 0 .2"/><mass value="2"/>
      <inertia ixx=".03" ixy="0" ixz="0" iyy=".03" iyz="0" izz=".01"/></inertial>
    <visual><origin xyz="0 0 .2"/>
      <geometry><cylinder radius=".05" length=".4"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0 .1"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="40" velocity="3"/>
  </joint>
</robot>
"""

# A path works the same way; so do xacro files and packages={"arm_description": "folder"}.
arm = description.load(ARM, actuators="position")
print(f"{arm.report.links} links, {arm.report.joints} joint, {arm.report.mass:g} kg")
for note in arm.report.notes:
    print(note)

sides = {"left_": 0.3, "right_": -0.3}
both = description.compose(
    [description.Robot(source=arm, prefix=side, pos=(0, y, 0)) for side, y in sides.items()]
)
with MujocoEnv(both.spec, initial_state={"left_shoulder": 0.4}) as env:
    env.set_ctrl({"left_shoulder": 0.4, "right_shoulder": -0.4})
    env.step(2000)
    for name, state in env.joint_states().items():
        print(f"{name} {state.qpos[0]:+.2f} rad")
