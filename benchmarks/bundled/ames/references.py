"""Areas summed up, years as ages, neighbours' prices a square foot; absent things as a level."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given, means_by
from mle_ideator.benchmarks.references.models import Model, blended
from mle_ideator.benchmarks.references.outputs import Array
from mle_ideator.benchmarks.references.tabular import ladder, rung

CONDITIONS = ["Very_Poor", "Poor", "Fair", "Below_Average", "Average", "Typical", "Above_Average"]
CONDITIONS += ["Good", "Very_Good", "Excellent"]
ORDERED = {
    "Overall_Cond": CONDITIONS,
    "Exter_Cond": CONDITIONS,
    "Bsmt_Cond": CONDITIONS,
    "Heating_QC": CONDITIONS,
    "Garage_Cond": CONDITIONS,
    "Bsmt_Exposure": ["No", "Mn", "Av", "Gd"],
    "BsmtFin_Type_1": ["Unf", "LwQ", "Rec", "BLQ", "ALQ", "GLQ"],
    "Garage_Finish": ["Unf", "RFn", "Fin"],
    "Functional": ["Sal", "Sev", "Maj2", "Maj1", "Mod", "Min2", "Min1", "Typ"],
}


def references() -> Iterator[Reference]:
    yield from ladder(features, full)
    yield from rung("full", with_lines(), full)


def with_lines() -> list[Model]:
    """Prices are nearly products: a line through logarithms sees what trees do not."""
    line, known = models.line(), models.tuned()
    boosted, extra, forest = known["slow half of columns"], known["extra 2"], known["forest 2"]
    return [
        line,
        blended("boosting and line", boosted, line),
        blended("extra trees and line", extra, line),
        blended("boosting, extra trees and line", boosted, extra, line),
        blended("boosting, forest and line", boosted, forest, line),
        blended("boosting, trees and line", boosted, boosted, forest, extra, line),
    ]


def features(given: Given) -> Pair:
    """With sums of areas and baths, and ages at the sale."""
    train, test = as_given(given)
    return _with_sums(train), _with_sums(test)


def full(given: Given) -> Pair:
    """With levels in their order, and with what a square foot costs around."""
    train, test = features(given)
    price = np.log1p(given.y)
    per_foot = price - np.log(train["area"])
    for key in (["Neighborhood"], ["MS_SubClass"], ["Neighborhood", "Bldg_Type"]):
        for name, of in (("price", price), ("price a foot", per_foot)):
            made = f"{' '.join(key)} {name}"
            train[made], test[made] = means_by(given, key, of, weight=5)
    train["price around"] = _around(train, train, per_foot, True)
    test["price around"] = _around(test, train, per_foot, False)
    return _in_order(train), _in_order(test)


def _with_sums(frame: pd.DataFrame) -> pd.DataFrame:
    porches = ["Open_Porch_SF", "Enclosed_Porch", "Three_season_porch", "Screen_Porch"]
    area = frame["Gr_Liv_Area"] + frame["Total_Bsmt_SF"]
    return frame.assign(
        area=area,
        baths=frame["Full_Bath"]
        + frame["Bsmt_Full_Bath"]
        + (frame["Half_Bath"] + frame["Bsmt_Half_Bath"]) / 2,
        porches=frame[porches].sum(axis=1),
        age=frame["Year_Sold"] - frame["Year_Built"],
        years_since_remodelled=frame["Year_Sold"] - frame["Year_Remod_Add"],
        finished_basement=frame["Total_Bsmt_SF"] - frame["Bsmt_Unf_SF"],
        log_area=np.log(area),
        log_lot=np.log(frame["Lot_Area"]),
        share_of_lot=frame["First_Flr_SF"] / frame["Lot_Area"],
        room_size=frame["Gr_Liv_Area"] / frame["TotRms_AbvGrd"],
    )


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    ranks = {
        f"{name} rank": frame[name].map({level: rank for rank, level in enumerate(levels, 1)})
        for name, levels in ORDERED.items()
    }
    return frame.assign(**{name: rank.fillna(0).astype(int) for name, rank in ranks.items()})


def _around(
    frame: pd.DataFrame, train: pd.DataFrame, price: "pd.Series[float]", inside: bool
) -> Array:
    """Mean price a foot of the training sales within some hundred metres."""
    ours, theirs = (one[["Longitude", "Latitude"]].to_numpy() for one in (frame, train))
    apart = ((ours[:, None, :] - theirs[None, :, :]) * [0.74, 1.0]) ** 2
    weight = np.exp(-apart.sum(axis=2) / (2 * 0.003**2))
    if inside:
        np.fill_diagonal(weight, 0.0)
    around = (weight @ price.to_numpy() + 2 * price.mean()) / (weight.sum(axis=1) + 2)
    return np.asarray(around)
