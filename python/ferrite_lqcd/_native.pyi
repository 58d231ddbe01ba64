# The compiled part. Its names are the package's own business.
from typing import Any, Optional, Sequence

from numpy.typing import NDArray

class PanicException(BaseException): ...
class FerriteError(Exception): ...
class InputError(FerriteError): ...
class FileError(FerriteError): ...
class DeviceError(FerriteError): ...

class SolverError(FerriteError):
    x: NDArray[Any]
    report: Any

class Device:
    name: str
    description: str
    grid: list[int]
    rank: int
    @staticmethod
    def open(
        kind: str,
        index: Optional[int] = ...,
        threads: Optional[int] = ...,
        comm: Optional[int] = ...,
        grid: Optional[list[int]] = ...,
    ) -> Device: ...
    def memory(self) -> tuple[int, int]: ...
    def part(self, lattice: list[int]) -> tuple[list[int], list[int]]: ...
    def leave(self) -> None: ...

class Links:
    lattice: list[int]
    is_shared: bool
    __array_interface__: dict[str, Any]
    @staticmethod
    def read(
        path: str,
        verify: bool,
        allow_non_unitary: bool,
        reunitarise: bool,
        lattice: Optional[list[int]],
        record: int,
        device: Optional[Device],
    ) -> tuple[Links, dict[str, Any]]: ...
    @staticmethod
    def from_array(given: NDArray[Any], device: Optional[Device]) -> Links: ...
    @staticmethod
    def unit(lattice: list[int], device: Optional[Device]) -> Links: ...
    @staticmethod
    def random(lattice: list[int], seed: int, noise: Optional[float], device: Optional[Device]) -> Links: ...
    def write(self, path: str, title: str, metadata: list[tuple[str, str]], single: bool) -> None: ...
    def plaquette(self) -> list[float]: ...
    def unitarity(self) -> float: ...
    def loops(self, device: Device) -> dict[str, Any]: ...
    def smear(self, device: Device, kind: str, weights: list[float], levels: int, spatial: bool) -> Links: ...
    def flow(self, device: Device, action: str, time: float, step: float) -> tuple[Links, dict[str, Any]]: ...
    def fix(
        self, device: Device, gauge: str, tol: float, overrelax: Optional[float], max_sweeps: int
    ) -> tuple[Links, list[float], int]: ...

class Dirac:
    description: dict[str, Any]
    @staticmethod
    def of(device: Device, links: Links, name: str, parameters: dict[str, str]) -> Dirac: ...
    def apply(self, given: NDArray[Any], form: str) -> NDArray[Any]: ...
    def solve(self, given: NDArray[Any], guess: Optional[NDArray[Any]], settings: dict[str, Any]) -> tuple[NDArray[Any], dict[str, Any]]: ...
    def solve_series(
        self, given: NDArray[Any], shifts: bool, values: list[float], settings: dict[str, Any]
    ) -> tuple[NDArray[Any], dict[str, Any]]: ...
    def set_up(self, settings: dict[str, Any]) -> dict[str, Any]: ...
    def save_setup(self, path: str) -> int: ...
    def load_setup(self, path: str, settings: dict[str, Any]) -> dict[str, Any]: ...
    def can_keep(self, settings: dict[str, Any]) -> bool: ...
    def propagate(
        self,
        time: int,
        profile: Optional[NDArray[Any]],
        shell: Optional[tuple[Links, float, int, list[float]]],
        settings: dict[str, Any],
    ) -> tuple[DevicePropagator, dict[str, Any]]: ...
    def propagate_through(
        self,
        source: DevicePropagator,
        sink: int | tuple[str, str],
        momentum: list[int],
        origin: list[int],
        time: int,
        antiperiodic: bool,
        shell: Optional[tuple[Links, float, int, list[float]]],
        settings: dict[str, Any],
    ) -> tuple[DevicePropagator, dict[str, Any]]: ...
    def apply_on_device(self, given: Shared, form: str) -> Shared: ...
    def solve_on_device(self, given: Shared, guess: Optional[Shared], settings: dict[str, Any]) -> tuple[Shared, dict[str, Any]]: ...

class DevicePropagator:
    device: Device
    shape: list[int]
    def numpy(self) -> NDArray[Any]: ...
    def gaussian(self, links: Links, width: float, steps: int, momentum: list[float]) -> DevicePropagator: ...

class Shared:
    shape: tuple[int, ...]
    device: Device
    __cuda_array_interface__: dict[str, Any]
    @staticmethod
    def zeros(device: Device, shape: list[int]) -> Shared: ...
    @staticmethod
    def copy_of(device: Device, given: NDArray[Any]) -> Shared: ...
    def numpy(self) -> NDArray[Any]: ...
    def __dlpack__(self, **request: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Chain:
    @staticmethod
    def of(device: Device, links: Links, spec: dict[str, Any]) -> Chain: ...
    def trajectory(self, number: int, reverse: bool) -> dict[str, Any]: ...
    def links(self) -> Links: ...

#: A propagator: where it is used, or an array.
Columns = DevicePropagator | NDArray[Any]

__version__: str
has_mpi: bool
#: Largest counts of work that one call takes, by name.
most: dict[str, int]

def internal_error(text: str) -> str: ...
def gpus() -> tuple[list[str], Optional[str]]: ...
def operators() -> list[dict[str, Any]]: ...
def solvers() -> list[dict[str, Any]]: ...
def quenched(
    device: Device,
    lattice: list[int],
    beta: float,
    seed: int,
    sweeps: int,
    overrelax: int,
    hot: bool,
    start: Optional[Links],
    passes: int,
) -> tuple[Links, list[float]]: ...
def read_fermions(
    path: str, staggered: bool, verify: bool, record: int, device: Optional[Device]
) -> NDArray[Any]: ...
def write_fermions(path: str, given: NDArray[Any], title: str, device: Optional[Device]) -> None: ...
def mesons(
    device: Device,
    quark: Columns,
    antiquark: Optional[Columns],
    origin: list[int],
    momenta: list[list[int]],
    pairs: list[tuple[int, int]],
) -> NDArray[Any]: ...
def nucleon(
    device: Device, propagator: Columns, origin: list[int], momenta: list[list[int]], antiperiodic: bool
) -> NDArray[Any]: ...
def staggered_mesons(
    device: Device,
    quark: Columns,
    antiquark: Optional[Columns],
    origin: list[int],
    momenta: list[list[int]],
) -> NDArray[Any]: ...
def staggered_names() -> list[str]: ...
def staggered_nucleon(
    device: Device,
    propagator: Columns,
    origin: list[int],
    momenta: list[list[int]],
    antiperiodic: bool,
    milc_phases: bool,
) -> NDArray[Any]: ...
def gamma_names() -> list[str]: ...
def gamma_matrix(number: int) -> NDArray[Any]: ...
def noise(lattice: list[int], staggered: bool, kind: str, seed: int, number: int) -> NDArray[Any]: ...
def gaussian(
    device: Device,
    links: Links,
    given: NDArray[Any],
    staggered: bool,
    width: float,
    steps: int,
    momentum: list[float],
) -> NDArray[Any]: ...
def sequential_source(
    device: Optional[Device],
    propagator: NDArray[Any],
    sink: int | tuple[str, str],
    momentum: list[int],
    origin: list[int],
    time: int,
    antiperiodic: bool,
) -> NDArray[Any]: ...
def conserved_charge(
    device: Device,
    links: Links,
    quark: Columns,
    through: Columns,
    source: int,
    origin: list[int],
    momenta: list[list[int]],
    antiperiodic: bool,
) -> NDArray[Any]: ...
def fit(correlators: list[list[float]], form: str, name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]: ...
def effective_masses(correlator: Sequence[float], form: str) -> list[float]: ...
def effective_estimates(
    correlators: list[list[float]], form: str, bin: int, bootstrap: Optional[int], seed: int
) -> tuple[list[float], list[float]]: ...
def convergence_svg(
    title: str,
    subtitle: str,
    history: list[list[float]],
    updates: list[tuple[int, list[float]]],
    tol: float,
) -> str: ...
def lines_svg(
    title: str,
    subtitle: str,
    axes: list[str],
    logarithmic: bool,
    curves: list[tuple[str, list[tuple[float, float]]]],
) -> str: ...
def error_bars_svg(
    title: str, subtitle: str, axes: list[str], values: list[float], errors: list[float]
) -> str: ...
