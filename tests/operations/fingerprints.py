"""Everything about an env that a refused request must not have changed."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.env.models import state_of

_MEASURED = {"realtime_measured", "load_error"}


def fingerprint(env) -> dict[str, Any]:
    """State, options and whatever ``info`` tells, but for what is measured."""
    info = msgspec.structs.asdict(env.info)
    told: dict[str, Any] = {name: info[name] for name in info if name not in _MEASURED}
    told["load_error"] = env.info.load_error
    if env.info.source is not None:
        with env.access() as (model, data):
            told["state"] = state_of(model, data)
            told["inertia"] = model.body_mass.tobytes() + model.geom_size.tobytes()
            told["links"] = model.eq_data.tobytes()
        told["options"] = env.runtime_options
    return told
