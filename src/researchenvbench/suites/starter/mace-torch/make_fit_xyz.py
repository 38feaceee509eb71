"""Writes `fit.xyz`, the training set of this task, the same on every machine.

One isolated oxygen and one isolated hydrogen atom give the energies of the free atoms;
each further frame is a water molecule, bent out of shape, in a periodic cubic cell. Its
energy, forces and stress come from one potential, so that they agree with each other and a
model can learn them: springs along the two O-H bonds and between the hydrogens, and a
Lennard-Jones attraction between the oxygens of neighbouring cells. The constants are near
those of common flexible water models; no experiment is meant.

Run it in this folder: python make_fit_xyz.py
"""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

FRAMES = 20
SEED = 5

# Units: angstrom and electronvolt.
BOND_LENGTH = 0.9572
BOND_STIFFNESS = 48.0
HYDROGEN_DISTANCE = 1.5139
HYDROGEN_STIFFNESS = 6.0
WELL_DEPTH = 0.0067
DIAMETER = 3.166
BINDING_ENERGY = -9.5
CELL_EDGE = 4.0
CELL_SPREAD = 0.1
DISPLACEMENT = 0.05

Vector = tuple[float, float, float]

# Oxygen first, the molecule in the plane z = 2 near the middle of the cell.
_HALF = HYDROGEN_DISTANCE / 2
_HEIGHT = math.sqrt(BOND_LENGTH**2 - _HALF**2)
MOLECULE: tuple[tuple[str, Vector], ...] = (
    ("O", (2.0, 2.0, 2.0)),
    ("H", (2.0 + _HALF, 2.0 + _HEIGHT, 2.0)),
    ("H", (2.0 - _HALF, 2.0 + _HEIGHT, 2.0)),
)
SPRINGS = (
    (0, 1, BOND_LENGTH, BOND_STIFFNESS),
    (0, 2, BOND_LENGTH, BOND_STIFFNESS),
    (1, 2, HYDROGEN_DISTANCE, HYDROGEN_STIFFNESS),
)


def interactions(positions: list[Vector], edge: float) -> tuple[float, list[Vector], list[float]]:
    """Energy, forces, and stress as xx, yy, zz, yz, xz, xy, of one frame."""
    energy = BINDING_ENERGY
    forces = [[0.0, 0.0, 0.0] for _ in positions]
    virial = [[0.0] * 3 for _ in range(3)]

    def add(arrow: Vector, slope: float) -> Vector:
        """Count a pair into the virial; `slope` is dU/dr. Gives the pull along `arrow`."""
        distance = math.hypot(*arrow)
        pull = tuple(slope * part / distance for part in arrow)
        for i, j in itertools.product(range(3), repeat=2):
            virial[i][j] += pull[i] * arrow[j]
        return pull[0], pull[1], pull[2]

    for first, second, rest, stiffness in SPRINGS:
        a, b = positions[first], positions[second]
        arrow = (b[0] - a[0], b[1] - a[1], b[2] - a[2])
        stretch = math.hypot(*arrow) - rest
        energy += 0.5 * stiffness * stretch**2
        for axis, part in enumerate(add(arrow, stiffness * stretch)):
            forces[first][axis] += part
            forces[second][axis] -= part
    for shift in itertools.product((-1, 0, 1), repeat=3):
        if shift == (0, 0, 0):
            continue
        arrow = (shift[0] * edge, shift[1] * edge, shift[2] * edge)
        distance = math.hypot(*arrow)
        sixth = (DIAMETER / distance) ** 6
        # Half, since each pair of cells is met from both sides. The forces cancel.
        energy += 0.5 * 4 * WELL_DEPTH * (sixth**2 - sixth)
        add(arrow, 0.5 * 4 * WELL_DEPTH * (6 * sixth - 12 * sixth**2) / distance)
    volume = edge**3
    stress = [virial[i][j] / volume for i, j in ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))]
    return energy, [(force[0], force[1], force[2]) for force in forces], stress


def frame(
    symbols: list[str],
    positions: list[Vector],
    forces: list[Vector],
    edge: float,
    comment: str,
) -> str:
    """One frame in the extended xyz format."""
    lattice = f"{edge:.8f} 0.0 0.0 0.0 {edge:.8f} 0.0 0.0 0.0 {edge:.8f}"
    head = f'Lattice="{lattice}" Properties=species:S:1:pos:R:3:REF_forces:R:3 {comment}'
    rows = [
        " ".join([symbol, *(f"{number:.8f}" for number in (*position, *force))])
        for symbol, position, force in zip(symbols, positions, forces, strict=True)
    ]
    return "\n".join([str(len(symbols)), head, *rows]) + "\n"


def main() -> None:
    """Write the file beside this script."""
    numbers = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    frames = [
        frame(
            [symbol],
            [(3.0, 3.0, 3.0)],
            [(0.0, 0.0, 0.0)],
            6.0,
            'config_type=IsolatedAtom REF_energy=0.0 pbc="F F F"',
        )
        for symbol in ("O", "H")
    ]
    symbols = [symbol for symbol, _ in MOLECULE]
    for _ in range(FRAMES):
        edge = CELL_EDGE + CELL_SPREAD * (2 * numbers.random() - 1)
        positions = [
            (
                x + DISPLACEMENT * numbers.gauss(0, 1),
                y + DISPLACEMENT * numbers.gauss(0, 1),
                z + DISPLACEMENT * numbers.gauss(0, 1),
            )
            for _, (x, y, z) in MOLECULE
        ]
        energy, forces, stress = interactions(positions, edge)
        tensor = " ".join(f"{part:.8f}" for part in stress)
        comment = f'config_type=Default REF_energy={energy:.8f} REF_stress="{tensor}" pbc="T T T"'
        frames.append(frame(symbols, positions, forces, edge, comment))
    Path(__file__).with_name("fit.xyz").write_text("".join(frames), encoding="ascii")


if __name__ == "__main__":
    main()
