"""The Dirac operators, each with its parameters. Made from the registry by ``python -m ferrite_lqcd._generate``."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _native
from .device import Device
from .dirac import Operator
from .gauge import Gauge

__all__ = ["Asqtad", "Clover", "ExpClover", "Hisq", "Staggered", "Twisted", "TwistedClover", "TwistedExpClover", "Wilson", "operators"]


def operators() -> "list[dict[str, Any]]":
    """All operators: ``name``, ``title``, ``formula``, ``staggered``, and ``parameters`` with name, type, help and default."""
    return _native.operators()


class Wilson(Operator):
    """The Wilson operator.

    M = (4 + m) - D/2, kappa = 1 / (2 (4 + m)), gamma matrices in the DeGrand-Rossi basis.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    kappa : float
        Hopping parameter kappa, instead of the mass.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    xi : float
        Bare anisotropy xi_0, the ratio of the spatial to the temporal lattice spacing [default: 1].
    nu : float
        Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1].
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        kappa: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        xi: "Optional[float]" = None,
        nu: "Optional[float]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "wilson",
            gauge,
            device=device,
            mass=mass,
            kappa=kappa,
            bc_time=bc_time,
            xi=xi,
            nu=nu,
            theta=theta,
        )


class Clover(Operator):
    """The Wilson-clover operator.

    M = 4 + m + i/2 sum_{mu<nu} c sigma F - D/2, c = csw / u0^3 in all planes, or Chroma's coefficients: CR / xi_0 in
    the spatial and CT in the temporal planes.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    kappa : float
        Hopping parameter kappa, instead of the mass.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    xi : float
        Bare anisotropy xi_0, the ratio of the spatial to the temporal lattice spacing [default: 1].
    nu : float
        Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1].
    csw : float
        Clover coefficient c_sw, the same in all planes.
    u0 : str | float
        Tadpole factor: clover coefficients are csw / u0^3, and asqtad's paths of n links are divided by u0^(n-1);
        asqtad also takes 'plaquette', the fourth root of the mean plaquette [default: 1].
    clover_r : float
        Chroma's clovCoeffR, instead of csw: the coefficient of the spatial planes is CR / xi_0.
    clover_t : float
        Chroma's clovCoeffT, the coefficient of the temporal planes.
    schur : str
        Form of the Schur complement: symmetric or asymmetric [default: symmetric].
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        kappa: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        xi: "Optional[float]" = None,
        nu: "Optional[float]" = None,
        csw: "Optional[float]" = None,
        u0: "Optional[str | float]" = None,
        clover_r: "Optional[float]" = None,
        clover_t: "Optional[float]" = None,
        schur: "Optional[str]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "clover",
            gauge,
            device=device,
            mass=mass,
            kappa=kappa,
            bc_time=bc_time,
            xi=xi,
            nu=nu,
            csw=csw,
            u0=u0,
            clover_r=clover_r,
            clover_t=clover_t,
            schur=schur,
            theta=theta,
        )


class ExpClover(Operator):
    """The exponential-clover operator.

    M = (4 + m) exp(i/2 sum_{mu<nu} c sigma F / (4 + m)) - D/2, with the coefficients c of clover.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    kappa : float
        Hopping parameter kappa, instead of the mass.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    xi : float
        Bare anisotropy xi_0, the ratio of the spatial to the temporal lattice spacing [default: 1].
    nu : float
        Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1].
    csw : float
        Clover coefficient c_sw, the same in all planes.
    u0 : str | float
        Tadpole factor: clover coefficients are csw / u0^3, and asqtad's paths of n links are divided by u0^(n-1);
        asqtad also takes 'plaquette', the fourth root of the mean plaquette [default: 1].
    clover_r : float
        Chroma's clovCoeffR, instead of csw: the coefficient of the spatial planes is CR / xi_0.
    clover_t : float
        Chroma's clovCoeffT, the coefficient of the temporal planes.
    schur : str
        Form of the Schur complement: symmetric or asymmetric [default: symmetric].
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        kappa: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        xi: "Optional[float]" = None,
        nu: "Optional[float]" = None,
        csw: "Optional[float]" = None,
        u0: "Optional[str | float]" = None,
        clover_r: "Optional[float]" = None,
        clover_t: "Optional[float]" = None,
        schur: "Optional[str]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "exp-clover",
            gauge,
            device=device,
            mass=mass,
            kappa=kappa,
            bc_time=bc_time,
            xi=xi,
            nu=nu,
            csw=csw,
            u0=u0,
            clover_r=clover_r,
            clover_t=clover_t,
            schur=schur,
            theta=theta,
        )


class Twisted(Operator):
    """The twisted-mass operator.

    M = 4 + m + i mu gamma5 - D/2.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    kappa : float
        Hopping parameter kappa, instead of the mass.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    xi : float
        Bare anisotropy xi_0, the ratio of the spatial to the temporal lattice spacing [default: 1].
    nu : float
        Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1].
    mu : float
        Twisted mass mu of the term i mu gamma5.
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        kappa: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        xi: "Optional[float]" = None,
        nu: "Optional[float]" = None,
        mu: "Optional[float]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "twisted",
            gauge,
            device=device,
            mass=mass,
            kappa=kappa,
            bc_time=bc_time,
            xi=xi,
            nu=nu,
            mu=mu,
            theta=theta,
        )


class TwistedClover(Operator):
    """The twisted-clover operator.

    M = A + i mu gamma5 - D/2, with the term A of clover.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    kappa : float
        Hopping parameter kappa, instead of the mass.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    xi : float
        Bare anisotropy xi_0, the ratio of the spatial to the temporal lattice spacing [default: 1].
    nu : float
        Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1].
    csw : float
        Clover coefficient c_sw, the same in all planes.
    u0 : str | float
        Tadpole factor: clover coefficients are csw / u0^3, and asqtad's paths of n links are divided by u0^(n-1);
        asqtad also takes 'plaquette', the fourth root of the mean plaquette [default: 1].
    clover_r : float
        Chroma's clovCoeffR, instead of csw: the coefficient of the spatial planes is CR / xi_0.
    clover_t : float
        Chroma's clovCoeffT, the coefficient of the temporal planes.
    mu : float
        Twisted mass mu of the term i mu gamma5.
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        kappa: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        xi: "Optional[float]" = None,
        nu: "Optional[float]" = None,
        csw: "Optional[float]" = None,
        u0: "Optional[str | float]" = None,
        clover_r: "Optional[float]" = None,
        clover_t: "Optional[float]" = None,
        mu: "Optional[float]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "twisted-clover",
            gauge,
            device=device,
            mass=mass,
            kappa=kappa,
            bc_time=bc_time,
            xi=xi,
            nu=nu,
            csw=csw,
            u0=u0,
            clover_r=clover_r,
            clover_t=clover_t,
            mu=mu,
            theta=theta,
        )


class TwistedExpClover(Operator):
    """The twisted exponential-clover operator.

    M = A + i mu gamma5 - D/2, with the term A of exp-clover.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    kappa : float
        Hopping parameter kappa, instead of the mass.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    xi : float
        Bare anisotropy xi_0, the ratio of the spatial to the temporal lattice spacing [default: 1].
    nu : float
        Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1].
    csw : float
        Clover coefficient c_sw, the same in all planes.
    u0 : str | float
        Tadpole factor: clover coefficients are csw / u0^3, and asqtad's paths of n links are divided by u0^(n-1);
        asqtad also takes 'plaquette', the fourth root of the mean plaquette [default: 1].
    clover_r : float
        Chroma's clovCoeffR, instead of csw: the coefficient of the spatial planes is CR / xi_0.
    clover_t : float
        Chroma's clovCoeffT, the coefficient of the temporal planes.
    mu : float
        Twisted mass mu of the term i mu gamma5.
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        kappa: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        xi: "Optional[float]" = None,
        nu: "Optional[float]" = None,
        csw: "Optional[float]" = None,
        u0: "Optional[str | float]" = None,
        clover_r: "Optional[float]" = None,
        clover_t: "Optional[float]" = None,
        mu: "Optional[float]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "twisted-exp-clover",
            gauge,
            device=device,
            mass=mass,
            kappa=kappa,
            bc_time=bc_time,
            xi=xi,
            nu=nu,
            csw=csw,
            u0=u0,
            clover_r=clover_r,
            clover_t=clover_t,
            mu=mu,
            theta=theta,
        )


class Staggered(Operator):
    """The naive staggered operator.

    M = m + D/2 on the links of the configuration; half of MILC's 2m + D.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    phases : str
        Staggered phases: milc or lexicographic (x first, as in CL2QCD) [default: milc].
    spread_boundary : bool
        Spread the antiperiodic boundary condition as factors exp(i pi/T) over all links in t, as in CL2QCD, instead
        of a sign of the last ones.
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        phases: "Optional[str]" = None,
        spread_boundary: "Optional[bool]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "staggered",
            gauge,
            device=device,
            mass=mass,
            bc_time=bc_time,
            phases=phases,
            spread_boundary=spread_boundary,
            theta=theta,
        )


class Asqtad(Operator):
    """The asqtad operator.

    M = m + D/2 on fat and long links that are made of paths; half of MILC's 2m + D.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    u0 : str | float
        Tadpole factor: clover coefficients are csw / u0^3, and asqtad's paths of n links are divided by u0^(n-1);
        asqtad also takes 'plaquette', the fourth root of the mean plaquette [default: 1].
    phases : str
        Staggered phases: milc or lexicographic (x first, as in CL2QCD) [default: milc].
    spread_boundary : bool
        Spread the antiperiodic boundary condition as factors exp(i pi/T) over all links in t, as in CL2QCD, instead
        of a sign of the last ones.
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        u0: "Optional[str | float]" = None,
        phases: "Optional[str]" = None,
        spread_boundary: "Optional[bool]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "asqtad",
            gauge,
            device=device,
            mass=mass,
            bc_time=bc_time,
            u0=u0,
            phases=phases,
            spread_boundary=spread_boundary,
            theta=theta,
        )


class Hisq(Operator):
    """The HISQ operator.

    M = m + D/2 on fat and long links of two levels of smearing; half of MILC's 2m + D.

    Parameters
    ----------
    gauge : Gauge
        Links of the configuration.
    mass : float
        Bare mass in lattice units.
    bc_time : str
        Boundary condition of fermions in t: antiperiodic or periodic [default: antiperiodic].
    naik_epsilon : float
        Correction epsilon of HISQ's Naik term, for heavy quarks [default: 0].
    phases : str
        Staggered phases: milc or lexicographic (x first, as in CL2QCD) [default: milc].
    spread_boundary : bool
        Spread the antiperiodic boundary condition as factors exp(i pi/T) over all links in t, as in CL2QCD, instead
        of a sign of the last ones.
    theta : Sequence[float]
        Angles of twisted boundary conditions, in radians: fermions get the phase exp(i theta) in each direction, in
        addition to the sign of bc_time, and hops exp(i theta/L). Links then have all 18 reals, long links 13 or 9
        [default: 0,0,0,0].
    device : Device, optional
        Device of the operator; default: that of ``fe.init``.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        mass: "Optional[float]" = None,
        bc_time: "Optional[str]" = None,
        naik_epsilon: "Optional[float]" = None,
        phases: "Optional[str]" = None,
        spread_boundary: "Optional[bool]" = None,
        theta: "Optional[Sequence[float]]" = None,
        device: Optional[Device] = None,
    ):
        super().__init__(
            "hisq",
            gauge,
            device=device,
            mass=mass,
            bc_time=bc_time,
            naik_epsilon=naik_epsilon,
            phases=phases,
            spread_boundary=spread_boundary,
            theta=theta,
        )
