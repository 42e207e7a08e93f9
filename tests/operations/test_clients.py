"""Several clients at once: each gets a whole answer or a typed error."""

from __future__ import annotations

import random
import threading

import pytest

from mjhost import MjhostError, MujocoEnv
from mjhost.operations import OPERATIONS, perform
from tests.operations.samples import MODEL, REQUESTS

ROUNDS = 200


@pytest.mark.slow
def test_clients_that_ask_everything_at_once_get_answers_or_typed_errors(store):
    unexpected: list[BaseException] = []
    answered: set[str] = set()
    names = [name for name in OPERATIONS if name != "advance"]

    def client(env, seed):
        order = random.Random(seed)
        for _ in range(ROUNDS):
            name = order.choice(names)
            request = {**REQUESTS[name], "timeout": 0.05} if name == "step" else REQUESTS[name]
            try:
                answer = perform(env, name, request, checkpoints=store)
            except MjhostError:
                continue
            except BaseException as error:
                unexpected.append(error)
                return
            assert type(answer) is OPERATIONS[name].response
            answered.add(name)

    with MujocoEnv(MODEL, realtime=None, running=True) as env:
        threads = [threading.Thread(target=client, args=(env, i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert unexpected == []
        assert len(answered) > len(names) / 2
        env.pause()
        assert env.info.fault is None


def test_a_client_can_cancel_the_steps_of_another():
    with MujocoEnv(MODEL) as env:
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(perform(env, "step", {"n": 2**62, "timeout": 60}))
        )
        thread.start()
        cancelled = 0
        while not cancelled:
            cancelled = perform(env, "cancel_steps").requests
        thread.join(60)
        assert answers[0].reason == "cancelled by cancel_steps"
        assert answers[0].completed < 2**62
