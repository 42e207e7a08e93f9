// A sensor plugin without attributes that counts steps: its sensor is GAIN times the steps before.
// SECOND names another plugin, registered after it; FIRST one that is registered before it.
#include <string.h>
#include <mujoco/mujoco.h>
#include <mujoco/mjplugin.h>

#ifndef GAIN
#define GAIN 1.0
#endif

static int size_of_state(const mjModel* m, int instance) {
  return 1;
}

static int size_of_sensor(const mjModel* m, int instance, int sensor) {
  return 1;
}

static int begin(const mjModel* m, mjData* d, int instance) {
  return 0;
}

static void clear(const mjModel* m, mjtNum* state, void* data, int instance) {
  state[0] = 0;
}

static void write_sensor(const mjModel* m, mjData* d, int instance, int capability) {
  mjtNum count = d->plugin_state[m->plugin_stateadr[instance]];
  for (int k = 0; k < m->nsensor; k++) {
    if (m->sensor_plugin[k] == instance) {
      d->sensordata[m->sensor_adr[k]] = GAIN * count;
    }
  }
}

static void count_step(const mjModel* m, mjData* d, int instance) {
  d->plugin_state[m->plugin_stateadr[instance]] += 1;
}

static void offer(const char* name) {
  mjpPlugin plugin;
  mjp_defaultPlugin(&plugin);
  plugin.name = name;
  plugin.capabilityflags = mjPLUGIN_SENSOR;
  plugin.needstage = mjSTAGE_ACC;
  plugin.nstate = size_of_state;
  plugin.nsensordata = size_of_sensor;
  plugin.init = begin;
  plugin.reset = clear;
  plugin.compute = write_sensor;
  plugin.advance = count_step;
  mjp_registerPlugin(&plugin);
}

mjPLUGIN_LIB_INIT(counter) {
#ifdef FIRST
  offer(FIRST);
#endif
  offer(NAME);
}
