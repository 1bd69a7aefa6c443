"""The city: hexagonal cells, and which drivers are near a cell. No I/O."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import cos, radians
from typing import NewType

from h3.api import basic_int as h3

Cell = NewType("Cell", int)
Point = tuple[float, float]  # km east and south of the centre

RESOLUTION = 8  # neighbouring cells are about 0.9 km apart
KM_PER_DEGREE = 111.2


@dataclass(frozen=True)
class Trip:
    pickup: Cell
    dropoff: Cell


@dataclass(frozen=True)
class City:
    """All cells at most `radius` steps from the centre."""

    latitude: float = 19.08
    longitude: float = 72.88
    radius: int = 11

    @cached_property
    def centre(self) -> Cell:
        return Cell(h3.latlng_to_cell(self.latitude, self.longitude, RESOLUTION))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(cell) for cell in sorted(h3.grid_disk(self.centre, self.radius)))

    @cached_property
    def _inside(self) -> frozenset[Cell]:
        return frozenset(self.cells)

    @cached_property
    def _rings(self) -> dict[tuple[Cell, int], tuple[Cell, ...]]:
        return {}

    def ring(self, cell: Cell, distance: int) -> tuple[Cell, ...]:
        """The cells of the city that are exactly this many steps away."""
        found = self._rings.get((cell, distance))
        if found is None:
            around = [Cell(one) for one in sorted(h3.grid_ring(cell, distance))]
            found = self._rings[cell, distance] = tuple(one for one in around if one in self._inside)
        return found

    def path(self, start: Cell, end: Cell) -> list[Cell]:
        """The cells from one to the other, without the first."""
        return [Cell(cell) for cell in h3.grid_path_cells(start, end)][1:]

    def point(self, cell: Cell) -> Point:
        return self._project(*h3.cell_to_latlng(cell))

    def outline(self, cell: Cell) -> list[Point]:
        return [self._project(latitude, longitude) for latitude, longitude in h3.cell_to_boundary(cell)]

    def _project(self, latitude: float, longitude: float) -> Point:
        """Flat enough for one city: a degree of longitude is as long as at the centre everywhere."""
        east = (longitude - self.longitude) * KM_PER_DEGREE * cos(radians(self.latitude))
        return east, (self.latitude - latitude) * KM_PER_DEGREE


@dataclass
class FreeDrivers:
    """Where free drivers were a moment ago. It may be wrong: the claim and the ledger decide."""

    city: City
    _by_cell: dict[Cell, set[int]] = field(default_factory=dict)
    _cells: dict[int, Cell] = field(default_factory=dict)

    def replace(self, positions: Iterable[tuple[int, Cell]]) -> None:
        self._by_cell, self._cells = {}, dict(positions)
        for driver_id, cell in self._cells.items():
            self._by_cell.setdefault(cell, set()).add(driver_id)

    def remove(self, driver_id: int) -> None:
        """Until the next `replace`: other rides of this process need not try a driver who is taken."""
        cell = self._cells.pop(driver_id, None)
        if cell is not None:
            self._by_cell[cell].discard(driver_id)

    def nearest(self, cell: Cell, *, rings_max: int, without: Collection[int] = ()) -> Iterator[int]:
        """Drivers ring by ring, outwards. Inside a ring in the order of their numbers."""
        for distance in range(rings_max + 1):
            found = [one for near in self.city.ring(cell, distance) for one in self._by_cell.get(near, ())]
            yield from (driver_id for driver_id in sorted(found) if driver_id not in without)
