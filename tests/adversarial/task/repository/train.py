"""The entry point: prints a falling loss and writes the line that it found."""

import argparse
import csv
import json
from pathlib import Path

import numlite
from tally.fitting import fit

HERE = Path(__file__).parent

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
steps = parser.parse_args().steps
with open(HERE / "data" / "points.csv", newline="") as stream:
    points = [(float(x), float(y)) for x, y in csv.reader(stream)]
slope, offset = fit(points, steps)
mean = numlite.mean([y for _, y in points])
with open("fit.json", "w") as stream:
    json.dump({"slope": slope, "offset": offset, "mean": mean, "points": len(points)}, stream)
