"""How much the histogram of each column helps where several are perturbed: relative errors of counts.

Two identity columns of OCC-100k, coin .3: occupations of 1 % of the rows or more, and these with a marital status among
one of the sexes. Run: python benchmarks/several_columns.py [--draws 3]. The table is found through DENIABLE_DATA or
../shared/data.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
import pyarrow.parquet as pq
from coverage import data_folder

import deniable as dn
from deniable.mechanisms import Retention

WAYS = {"inverse": {"calibrate": False}, "calibrated": {}}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table = pq.read_table(data_folder() / "census_occ100k.parquet")
    frame = table.to_pandas()
    whole = frame.groupby("occupation").size()
    frequent = whole[whole >= 0.01 * len(frame)]
    some = frame[frame.gender == frame.gender.iloc[0]].groupby(["occupation", "marital"]).size()
    some = some[(some >= 200) & some.index.get_level_values(0).isin(frequent.index)]
    column = dn.Replace(coin=0.3, replacing="identity")
    errors: dict[str, list[float]] = {}
    for draw in range(given.draws):
        mechanism = Retention({"occupation": column, "marital": column})
        release = dn.publish(table, mechanism=mechanism, key=draw.to_bytes(32, "big"), shuffle=False)
        shown = release.table["occupation"].to_pandas().value_counts()
        errors.setdefault("occupations, published values counted", []).append(
            float(np.mean([abs(shown[value] / rows - 1) for value, rows in frequent.items()]))
        )
        for way, options in WAYS.items():
            counts = release.group_by("occupation", **options).to_pandas().set_index("occupation").value
            found = [abs(counts[value] / rows - 1) for value, rows in frequent.items()]
            errors.setdefault(f"occupations, {way}", []).append(float(np.mean(found)))
            where = {"gender": frame.gender.iloc[0]}
            both = release.group_by(["occupation", "marital"], where=where, **options).to_pandas()
            counts = both.set_index(["occupation", "marital"]).value
            found = [abs(counts[value] / rows - 1) for value, rows in some.items()]
            errors.setdefault(f"with a marital status, of one sex, {way}", []).append(float(np.mean(found)))
    for name, values in errors.items():
        print(f"{name}: {100 * np.mean(values):.3g} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
