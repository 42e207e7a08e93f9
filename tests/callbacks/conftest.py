from __future__ import annotations

import mujoco
import pytest

from mjhost.callbacks import KINDS, Router
from mjhost.callbacks import router as process_router
from tests.callbacks.scenes import symbols


@pytest.fixture(scope="session")
def _routers():
    return {True: Router(fast=True), False: Router(fast=False)}


@pytest.fixture(params=[True, False], ids=["frames", "thunks"])
def router(request, _routers):
    """A router of each make; it must have let go of everything when the test ends."""
    yield _routers[request.param]
    _assert_empty(_routers[request.param])


@pytest.fixture
def fast_router(_routers):
    yield _routers[True]
    _assert_empty(_routers[True])


@pytest.fixture
def slow_router(_routers):
    yield _routers[False]
    _assert_empty(_routers[False])


@pytest.fixture
def shared():
    """The router of the process."""
    yield process_router
    _assert_empty(process_router)


def _assert_empty(router):
    left = router.installed, len(router.routes), dict(router.hosting)
    for route in tuple(router.routes.values()):
        route.detach()
    router.hosting.clear()
    assert left == ((), 0, {}), "the test left hooks, routes or marks behind"


@pytest.fixture(autouse=True)
def _engine_as_before():
    """What a failing test left in the engine must not fall on the next one."""
    before = symbols()
    yield
    for name in KINDS:
        if symbols()[name] != before[name]:
            getattr(mujoco, f"set_mjcb_{name}")(None)
    assert symbols() == before


@pytest.fixture
def foreign():
    """Installs foreign Python callbacks for a test: ``foreign(kind, fn)``."""
    used = set()

    def install(kind, fn):
        used.add(kind)
        getattr(mujoco, f"set_mjcb_{kind}")(fn)

    yield install
    for kind in used:
        getattr(mujoco, f"set_mjcb_{kind}")(None)


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param
