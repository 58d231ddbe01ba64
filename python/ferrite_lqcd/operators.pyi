"""Signatures of the classes that operators.py makes. Written by ``python -m ferrite_lqcd._generate``."""

from typing import Any, Optional, Sequence

from .device import Device
from .dirac import Operator
from .gauge import Gauge

__all__ = ["Asqtad", "Clover", "ExpClover", "Hisq", "Staggered", "Twisted", "TwistedClover", "TwistedExpClover", "Wilson", "operators"]

def operators() -> "list[dict[str, Any]]": ...

class Wilson(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., kappa: Optional[float] = ...,
        bc_time: Optional[str] = ..., xi: Optional[float] = ..., nu: Optional[float] = ...,
        theta: Optional[Sequence[float]] = ..., device: Optional[Device] = ...
    ) -> None: ...

class Clover(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., kappa: Optional[float] = ...,
        bc_time: Optional[str] = ..., xi: Optional[float] = ..., nu: Optional[float] = ...,
        csw: Optional[float] = ..., u0: Optional[str | float] = ..., clover_r: Optional[float] = ...,
        clover_t: Optional[float] = ..., schur: Optional[str] = ..., theta: Optional[Sequence[float]] = ...,
        device: Optional[Device] = ...
    ) -> None: ...

class ExpClover(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., kappa: Optional[float] = ...,
        bc_time: Optional[str] = ..., xi: Optional[float] = ..., nu: Optional[float] = ...,
        csw: Optional[float] = ..., u0: Optional[str | float] = ..., clover_r: Optional[float] = ...,
        clover_t: Optional[float] = ..., schur: Optional[str] = ..., theta: Optional[Sequence[float]] = ...,
        device: Optional[Device] = ...
    ) -> None: ...

class Twisted(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., kappa: Optional[float] = ...,
        bc_time: Optional[str] = ..., xi: Optional[float] = ..., nu: Optional[float] = ...,
        mu: Optional[float] = ..., theta: Optional[Sequence[float]] = ..., device: Optional[Device] = ...
    ) -> None: ...

class TwistedClover(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., kappa: Optional[float] = ...,
        bc_time: Optional[str] = ..., xi: Optional[float] = ..., nu: Optional[float] = ...,
        csw: Optional[float] = ..., u0: Optional[str | float] = ..., clover_r: Optional[float] = ...,
        clover_t: Optional[float] = ..., mu: Optional[float] = ..., theta: Optional[Sequence[float]] = ...,
        device: Optional[Device] = ...
    ) -> None: ...

class TwistedExpClover(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., kappa: Optional[float] = ...,
        bc_time: Optional[str] = ..., xi: Optional[float] = ..., nu: Optional[float] = ...,
        csw: Optional[float] = ..., u0: Optional[str | float] = ..., clover_r: Optional[float] = ...,
        clover_t: Optional[float] = ..., mu: Optional[float] = ..., theta: Optional[Sequence[float]] = ...,
        device: Optional[Device] = ...
    ) -> None: ...

class Staggered(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., bc_time: Optional[str] = ...,
        phases: Optional[str] = ..., spread_boundary: Optional[bool] = ...,
        theta: Optional[Sequence[float]] = ..., device: Optional[Device] = ...
    ) -> None: ...

class Asqtad(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., bc_time: Optional[str] = ...,
        u0: Optional[str | float] = ..., phases: Optional[str] = ..., spread_boundary: Optional[bool] = ...,
        theta: Optional[Sequence[float]] = ..., device: Optional[Device] = ...
    ) -> None: ...

class Hisq(Operator):
    def __init__(
        self, gauge: Gauge, *, mass: Optional[float] = ..., bc_time: Optional[str] = ...,
        naik_epsilon: Optional[float] = ..., phases: Optional[str] = ...,
        spread_boundary: Optional[bool] = ..., theta: Optional[Sequence[float]] = ...,
        device: Optional[Device] = ...
    ) -> None: ...
