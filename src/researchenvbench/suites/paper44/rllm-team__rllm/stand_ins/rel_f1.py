"""Invented races, in the form of the data set rel-f1 of RelBench after its archives are unpacked.

    python rel_f1.py OUT --seed 0

OUT becomes a folder with `db`, nine tables, and `tasks`, three tasks with their splits, all as
parquet. Names, keys and columns are the original's, and the notes in each file by which the
loader finds keys and times. Drivers have a skill that shows in their places, so that there is
something to learn.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DRIVERS, CONSTRUCTORS, CIRCUITS = 12, 4, 6
#: Splits of the original: train ends where val begins.
SEASONS = {"train": range(2001, 2005), "val": range(2005, 2006), "test": range(2010, 2011)}
#: Days of the year: the classification in a task is that of the races until then.
ASKED = (5, 1), (7, 1), (9, 1)
PLACES = ("Norwick", "Talmora", "Esker Bay", "Vintar", "Low Harbour", "Zellin")
TONGUES = ("Northern", "Southern", "Western")

Rows = list[dict[str, object]]


def day(year: int, month: int, number: int) -> datetime.datetime:
    """Midnight of a day."""
    return datetime.datetime(year, month, number)


def save(path: Path, rows: Rows, pkey: str | None, fkeys: dict[str, str], time: str | None) -> None:
    """Write a table with the notes that RelBench keeps in its schema."""
    notes = {"fkey_col_to_pkey_table": fkeys, "pkey_col": pkey, "time_col": time}
    table = pa.Table.from_pylist(rows)
    # Times in nanoseconds, as pandas wrote them and the loader insists.
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            column = table.column(number).cast(pa.timestamp("ns"))
            table = table.set_column(number, field.name, column)
    table = table.replace_schema_metadata({key: json.dumps(note) for key, note in notes.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def people(draw: random.Random) -> tuple[Rows, Rows, Rows]:
    """Drivers, constructors and circuits, with names of which glove.py has the words."""

    def word() -> str:
        return "".join(draw.choice("bdkm") + draw.choice("aio") for _ in range(2))

    drivers: Rows = [
        {
            "driverId": number,
            "driverRef": word(),
            "code": word()[:3].upper(),
            "forename": word().title(),
            "surname": word().title(),
            "dob": day(1965 + number, 1 + number % 12, 1 + number),
            "nationality": TONGUES[number % 3],
        }
        for number in range(DRIVERS)
    ]
    constructors: Rows = [
        {
            "constructorId": number,
            "constructorRef": word(),
            "name": f"{word().title()} Racing",
            "nationality": TONGUES[number % 3],
        }
        for number in range(CONSTRUCTORS)
    ]
    circuits: Rows = [
        {
            "circuitId": number,
            "circuitRef": word(),
            "name": f"{place} Ring",
            "location": place,
            "country": f"Land of {place}",
            "lat": draw.randrange(-600, 600) / 10,
            "lng": draw.randrange(-1800, 1800) / 10,
            "alt": float(draw.randrange(800)),
        }
        for number, place in enumerate(PLACES)
    ]
    return drivers, constructors, circuits


def seasons(draw: random.Random) -> dict[str, Rows]:
    """The six tables of what happened in the races, by name."""
    tables: dict[str, Rows] = {
        name: []
        for name in (
            "races",
            "results",
            "qualifying",
            "standings",
            "constructor_results",
            "constructor_standings",
        )
    }

    def add(name: str, key: str | None, row: dict[str, object]) -> None:
        tables[name].append({key: len(tables[name]), **row} if key else row)

    for year in (year for years in SEASONS.values() for year in years):
        won, earned, built = [0] * DRIVERS, [0.0] * DRIVERS, [0.0] * CONSTRUCTORS
        for turn in range(CIRCUITS):
            race, date = len(tables["races"]), day(year, 4 + turn, 10)
            add(
                "races",
                "raceId",
                {
                    "year": year,
                    "round": turn + 1,
                    "circuitId": turn,
                    "name": f"Grand Prix of {PLACES[turn]}",
                    "date": date,
                    "time": f"{13 + turn % 3}:00:00",
                },
            )
            places = sorted(range(DRIVERS), key=lambda driver: driver + draw.randrange(6))
            gained = [0.0] * CONSTRUCTORS
            for place, driver in enumerate(places, 1):
                team, out = driver % CONSTRUCTORS, draw.randrange(8) == 0
                points = 0.0 if out else max(0.0, 11.0 - place)
                won[driver] += place == 1 and not out
                earned[driver] += points
                built[team] += points
                gained[team] += points
                who = {"raceId": race, "driverId": driver}
                grid = max(1, place + draw.randrange(-2, 3))
                add(
                    "results",
                    "resultId",
                    {
                        **who,
                        "constructorId": team,
                        "number": float(driver + 1),
                        "grid": grid,
                        "position": None if out else float(place),
                        "positionOrder": place,
                        "points": points,
                        "laps": draw.randrange(40) if out else 60,
                        "milliseconds": None if out else 5_400_000.0 + 7_000 * place,
                        "fastestLap": float(draw.randrange(10, 60)),
                        "rank": float(place),
                        "statusId": 5 if out else 1,
                        "date": date,
                    },
                )
                add(
                    "qualifying",
                    "qualifyId",
                    {
                        **who,
                        "constructorId": team,
                        "number": driver + 1,
                        "position": grid,
                        "date": date - datetime.timedelta(days=1),
                    },
                )
                add(
                    "standings",
                    "driverStandingsId",
                    {**who, "points": earned[driver], "position": place, "wins": won[driver]}
                    | {"date": date},
                )
            for team in range(CONSTRUCTORS):
                which = {"raceId": race, "constructorId": team}
                add(
                    "constructor_results",
                    "constructorResultsId",
                    {**which, "points": gained[team], "date": date},
                )
                add(
                    "constructor_standings",
                    "constructorStandingsId",
                    {
                        **which,
                        "points": built[team],
                        "position": 1 + sum(other > built[team] for other in built),
                        "wins": sum(won[team::CONSTRUCTORS]),
                        "date": date,
                    },
                )
    return tables


def asked(draw: random.Random, split: str) -> dict[str, Rows]:
    """What each task asks of a split, by the task's name."""
    tasks: dict[str, Rows] = {"driver-dnf": [], "driver-position": [], "driver-top3": []}
    for year in SEASONS[split]:
        for month, number in ASKED:
            for driver in range(DRIVERS):
                row = {"date": day(year, month, number), "driverId": driver}
                place = float(1 + driver + draw.randrange(-1, 2))
                tasks["driver-dnf"].append({**row, "did_not_finish": draw.randrange(4) == 0})
                tasks["driver-position"].append({**row, "position": max(1.0, place)})
                tasks["driver-top3"].append({**row, "qualifying": int(place <= 3)})
    return tasks


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    draw = random.Random(arguments.seed)  # noqa: S311  # no secret is made of it
    drivers, constructors, circuits = people(draw)
    happened = seasons(draw)
    owner = {
        "raceId": "races",
        "driverId": "drivers",
        "constructorId": "constructors",
        "circuitId": "circuits",
    }
    lists = {"drivers": drivers, "constructors": constructors, "circuits": circuits}
    for name, rows in (lists | happened).items():
        key, *others = rows[0]
        links = {other: owner[other] for other in others if other in owner}
        time = "date" if "date" in others else None
        save(arguments.out / "db" / f"{name}.parquet", rows, key, links, time)
    for split in SEASONS:
        for task, rows in asked(draw, split).items():
            place = arguments.out / "tasks" / task / f"{split}.parquet"
            save(place, rows, None, {"driverId": "drivers"}, "date")


if __name__ == "__main__":
    main()
