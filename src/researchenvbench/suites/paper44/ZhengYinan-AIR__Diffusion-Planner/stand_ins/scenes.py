"""Makes scenes of traffic in the form of the repository's prepared training data.

Called as `python scenes.py OUT --seed N`. Names, shapes and types are those that `data_process.py`
writes from nuPlan: one npz a scene, with what it lists as train_list.json beside them. Distances
are in metres, seen from the car that is planned for, which is at 0, 0 and looks along x; a step is
0.1 s. Each scene is a curved road of three lanes with cars, people and cones on it; rows that are
not used are zero, as there.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy

COUNT = 8
PAST, FUTURE = 21, 80
AGENTS, STATIC, LANES, ROUTE, POINTS = 32, 5, 70, 25, 20
STEP_S = 0.1
LANE_WIDTH_M = 3.5

Array = numpy.ndarray


def whole(random: numpy.random.Generator, low: float, high: float) -> float:
    """A number between these, drawn as an integer, which is the same on each processor."""
    return low + (high - low) * int(random.integers(0, 1001)) / 1000


def place(along: float, aside: float, curve: float) -> tuple[float, float, float]:
    """x, y and heading of a point of the road: an arc with this curvature, in 1/m."""
    heading = curve * along
    straight = along * (1 - heading**2 / 6)
    return (
        straight - aside * math.sin(heading),
        curve * along**2 / 2 + aside * math.cos(heading),
        heading,
    )


def lane(start: float, aside: float, curve: float, light: int) -> Array:
    """Twenty points of a lane: place, way to the next, to the two edges, and the traffic light."""
    points = numpy.zeros((POINTS, 12))
    for number in range(POINTS):
        x, y, heading = place(start + number, aside, curve)
        further = place(start + number + 1, aside, curve)
        edge = LANE_WIDTH_M / 2
        across = (-edge * math.sin(heading), edge * math.cos(heading))
        way = (further[0] - x, further[1] - y)
        points[number, :8] = (x, y, *way, *across, -across[0], -across[1])
        points[number, 8 + light] = 1
    return points


def drive(start: float, aside: float, speed: float, curve: float, steps: range) -> Array:
    """x, y and heading at each of these steps."""
    return numpy.array([place(start + speed * STEP_S * step, aside, curve) for step in steps])


def scene(random: numpy.random.Generator) -> dict[str, Array]:
    """One scene."""
    curve = whole(random, -0.006, 0.006)
    speed = whole(random, 4, 12)
    data = {
        "ego_current_state": numpy.array(
            [0, 0, 1, 0, speed, 0, whole(random, -0.5, 0.5), 0, 0.1 * curve, speed * curve]
        ),
        "ego_agent_future": drive(0, 0, speed, curve, range(1, FUTURE + 1)),
        "neighbor_agents_past": numpy.zeros((AGENTS, PAST, 11)),
        "neighbor_agents_future": numpy.zeros((AGENTS, FUTURE, 3)),
        "static_objects": numpy.zeros((STATIC, 10)),
        "lanes": numpy.zeros((LANES, POINTS, 12)),
        "lanes_speed_limit": numpy.zeros((LANES, 1)),
        "lanes_has_speed_limit": numpy.zeros((LANES, 1), dtype=bool),
        "route_lanes": numpy.zeros((ROUTE, POINTS, 12)),
        "route_lanes_speed_limit": numpy.zeros((ROUTE, 1)),
        "route_lanes_has_speed_limit": numpy.zeros((ROUTE, 1), dtype=bool),
    }
    for number in range(int(random.integers(12, AGENTS + 1))):
        start, aside = whole(random, -40, 60), LANE_WIDTH_M * int(random.integers(-1, 2))
        kind, pace = int(random.integers(0, 3)), whole(random, 0.5, 12)
        way = drive(start, aside, pace, curve, range(1 - PAST, FUTURE + 1))
        past = data["neighbor_agents_past"][number]
        for step, (x, y, heading) in enumerate(way[:PAST]):
            turned = (math.cos(heading), math.sin(heading))
            size = ((2.0, 4.6), (0.7, 0.7), (0.6, 1.8))[kind]
            past[step, :8] = (x, y, *turned, pace * turned[0], pace * turned[1], *size)
            past[step, 8 + kind] = 1
        data["neighbor_agents_future"][number] = way[PAST:]
    for number in range(int(random.integers(0, STATIC + 1))):
        x, y, heading = place(whole(random, 5, 40), whole(random, -6, 6), curve)
        data["static_objects"][number, :6] = (x, y, math.cos(heading), math.sin(heading), 0.4, 0.4)
        data["static_objects"][number, 6 + int(random.integers(0, 4))] = 1
    starts = [POINTS * number for number in range(-3, 5)]
    for number in range(3 * len(starts)):
        aside = LANE_WIDTH_M * (number % 3 - 1)
        data["lanes"][number] = lane(starts[number // 3], aside, curve, int(random.integers(0, 4)))
        data["lanes_speed_limit"][number] = 13.4 * (number % 2)
        data["lanes_has_speed_limit"][number] = number % 2 == 1
    for number in range(5):
        data["route_lanes"][number] = lane(POINTS * number, 0, curve, 3)
        data["route_lanes_speed_limit"][number] = 13.4
        data["route_lanes_has_speed_limit"][number] = True
    # Rounded, since sines differ in the last place between processors.
    return {
        name: values if values.dtype == bool else numpy.round(values, 4).astype(numpy.float32)
        for name, values in data.items()
    }


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    arguments.out.mkdir(parents=True)
    names = [f"drawn_{number:04}.npz" for number in range(COUNT)]
    for name in names:
        numpy.savez(arguments.out / name, **scene(random))
    (arguments.out / "train_list.json").write_text(json.dumps(names) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
