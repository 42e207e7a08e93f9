"""Garbage against every operation: typed errors come out, and nothing was changed by them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mjhost import MjhostError, MujocoEnv
from mjhost.operations import OPERATIONS, error_record, perform
from tests.operations.fingerprints import fingerprint
from tests.operations.garbage import JSON
from tests.operations.samples import MODEL, REQUESTS

LONGEST = 50  # steps at which a request for very many stops by itself


def near_misses(name: str) -> st.SearchStrategy:
    """A good request with some fields replaced, added or left out."""
    fields = {field.name for field in msgspec.structs.fields(OPERATIONS[name].request)}
    keys = st.sampled_from(sorted(fields)) if fields else st.just("n")
    changes = st.dictionaries(keys | st.text(max_size=4), JSON, max_size=3)
    good = st.sampled_from([REQUESTS[name], {}])
    return st.tuples(good, changes).map(lambda pair: {**pair[0], **pair[1]})


def ask(env, name, request, store):
    """What the client gets; an error has changed nothing."""
    before = {**fingerprint(env), "files": store.files()}
    try:
        answer = perform(env, name, request, checkpoints=store)
    except MjhostError as error:
        assert msgspec.json.encode(error_record(error))
        after = {**fingerprint(env), "files": store.files()}
        assert {**after, "load_error": before["load_error"]} == before
    else:
        assert msgspec.json.decode(msgspec.json.encode(answer), type=OPERATIONS[name].response)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
@settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_garbage_gets_a_typed_error_and_changes_nothing(name, store, data):
    requests = data.draw(st.lists(near_misses(name) | JSON, min_size=4, max_size=4))
    with MujocoEnv(MODEL) as env:
        env.step(2)
        for request in requests:
            env.stop_at(steps=env.info.step_count + LONGEST)
            ask(env, name, request, store)
            env.pause()
