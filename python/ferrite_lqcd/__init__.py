"""Ferrite: lattice QCD on GPUs and CPUs.

Gauge fields are ``Gauge`` objects, fermion fields are NumPy arrays ``[t, z, y, x, spin, colour]``, Dirac operators have ``apply``,
``solve`` and ``propagator``. All quantities are in lattice units.

Examples
--------
>>> import ferrite_lqcd as fe
>>> U = fe.Gauge.random((4, 4, 4, 8), seed=7, noise=0.1)   # or fe.Gauge.read("cfg.ildg")
>>> D = fe.Clover(U, mass=0.1, csw=1.0)
>>> S = D.propagator(fe.Point((0, 0, 0, 0)))
>>> fe.mesons(S).effective_mass("pion").shape
(4,)
"""

# The guard is imported first, because other modules take guarded functions of the compiled part.
from . import _guard, _native
from .arrays import *  # noqa: F403
from .arrays import __all__ as _arrays_names
from .contraction import *  # noqa: F403
from .contraction import __all__ as _contraction
from .device import *  # noqa: F403
from .device import __all__ as _device
from .dirac import *  # noqa: F403
from .dirac import __all__ as _dirac
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .fits import *  # noqa: F403
from .fits import __all__ as _fits
from .gauge import *  # noqa: F403
from .gauge import __all__ as _gauge
from .hmc import *  # noqa: F403
from .hmc import __all__ as _hmc
from .operators import *  # noqa: F403
from .operators import __all__ as _operators
from .plots import *  # noqa: F403
from .plots import __all__ as _plots
from .reports import *  # noqa: F403
from .reports import __all__ as _reports
from .sequential import *  # noqa: F403
from .sequential import __all__ as _sequential
from .sources import *  # noqa: F403
from .sources import __all__ as _sources
from .spectrum import *  # noqa: F403
from .spectrum import __all__ as _spectrum

__version__ = _native.__version__
__all__ = [
    *_arrays_names, *_contraction, *_device, *_dirac, *_errors, *_fits, *_gauge, *_hmc, *_operators, *_plots, *_reports,
    *_sequential, *_sources, *_spectrum,
]
