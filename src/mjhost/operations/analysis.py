"""Operations that ask the engine about the present state: forward, inverse, linearize."""

from __future__ import annotations

from typing import Annotated, Final

from mjhost.operations.fields import (
    Done,
    RealMatrix,
    RealVector,
    Request,
    Response,
    about,
)
from mjhost.operations.responses import response_of
from mjhost.operations.spec import Site, described

_OF_X: Final = "of x = (dq, qvel, act)"


class InverseAnswer(Response, frozen=True, kw_only=True):
    """The forces that would bring about the present acceleration."""

    qfrc_inverse: Annotated[
        RealVector, about("external forces of the joints", "N or N·m", frame="joint", shape="(nv,)")
    ]


class Linearize(Request, frozen=True, kw_only=True):
    """How to take finite differences."""

    eps: Annotated[
        float, about("size of the perturbations, in units of what is perturbed", "1")
    ] = 1e-6
    centered: Annotated[
        bool, about("use central differences: twice the steps, one order better")
    ] = True


class Matrices(Response, frozen=True, kw_only=True):
    """x' = A x + B u and s = C x + D u, in the engine's units; null where not finite."""

    A: Annotated[RealMatrix, about(f"next x by change {_OF_X}", "1", shape="(2*nv+na, 2*nv+na)")]
    B: Annotated[RealMatrix, about("next x by change of ctrl", "1", shape="(2*nv+na, nu)")]
    C: Annotated[
        RealMatrix, about(f"sensors by change {_OF_X}", "1", shape="(nsensordata, 2*nv+na)")
    ]
    D: Annotated[RealMatrix, about("sensors by change of ctrl", "1", shape="(nsensordata, nu)")]


def forward(site: Site) -> Done:
    """Recomputes everything derived from the present state; hooks fire, time stays."""
    site.env.forward()
    return Done()


def inverse(site: Site) -> InverseAnswer:
    """Computes the inverse dynamics of the present state; hooks fire, time stays."""
    generation = site.env.generations.model
    site.env.inverse()
    with site.env.access(generation) as (_, data):
        forces = data.qfrc_inverse.copy()
    return response_of(InverseAnswer, qfrc_inverse=forces)


def linearize(site: Site, request: Linearize) -> Matrices:
    """Takes the transition matrices of one step around the present state and control."""
    found = site.env.linearize(eps=request.eps, centered=request.centered)
    return response_of(Matrices, found)


SPECS: Final = tuple(
    described("Looking into the engine", function) for function in (forward, inverse, linearize)
)
