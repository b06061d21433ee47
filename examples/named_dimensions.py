"""Queries on tables by first-class dimensions: filter, group, join and pivot, each checked against a loop in Python.

    python examples/named_dimensions.py [--device cpu] [--sales 4000] [--out FOLDER]

A table is a dict of columns, tensors of one length. Naming the axis of a table with a Dim makes its rows free variables; a condition
between two such names is a join. Draws the revenue by country and month in FOLDER/named_dimensions.png.
"""

import argparse
import pathlib
from typing import Any

import numpy as np
import tqdm

import backplane as bp
from backplane import Tensor

PRODUCTS, COUNTRIES, MONTHS = 12, 5, 12


def tables(sales: int, device: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    rng = np.random.default_rng(0)
    table = {
        "product": rng.integers(0, PRODUCTS, sales),
        "country": rng.integers(0, COUNTRIES, sales),
        "month": rng.integers(0, MONTHS, sales),
        "amount": rng.integers(1, 9, sales).astype("float32"),
    }
    products = {"price": rng.uniform(1, 20, PRODUCTS).astype("float32"), "tax": rng.choice([0.07, 0.19], PRODUCTS).astype("float32")}
    return tuple({name: bp.asarray(column).to(device) for name, column in one.items()} for one in (table, products))  # type: ignore[return-value]


def revenue(sales: dict[str, Tensor], products: dict[str, Tensor]) -> Any:
    """select amount * price * (1 + tax) from sales join products: a gather by an index with a named axis."""
    sale = bp.dims(1)
    product = sales["product"][sale]
    return sale, sales["amount"][sale] * products["price"][product] * (1 + products["tax"][product])


def by_country_and_month(sales: dict[str, Tensor], products: dict[str, Tensor]) -> Tensor:
    """group by country, month: a sum over the sales that belong to each pair, which is one matrix product."""
    sale, money = revenue(sales, products)
    country, month = bp.dims(sizes=(COUNTRIES, MONTHS))
    in_country = (sales["country"][sale] == country).astype(money.dtype)
    in_month = (sales["month"][sale] == month).astype(money.dtype)
    return ((money * in_country) * in_month).sum(sale).order(country, month)


def large_sales(sales: dict[str, Tensor], products: dict[str, Tensor], least: float) -> Tensor:
    """where revenue >= least: the rows, largest first."""
    sale, money = revenue(sales, products)
    rows = money.order(sale)
    chosen = bp.flatnonzero(rows >= least)
    return chosen[bp.argsort(-rows[chosen])]


def bought_together(sales: dict[str, Tensor]) -> Tensor:
    """How often two products were sold in the same country and month: a join of the table with itself, without its pairs of rows."""
    sale, first, second, country, month = bp.dims(sizes=(None, PRODUCTS, PRODUCTS, COUNTRIES, MONTHS))
    sold = (sales["product"][sale] == first) & (sales["country"][sale] == country) & (sales["month"][sale] == month)
    count = sold.astype(bp.float32).sum(sale)
    other = count.index(first, second)
    return (count * other).sum((country, month)).order(first, second)


def check(what: str, found: Tensor, expected: Any) -> None:
    found_array = found.to("cpu").numpy()
    if not np.allclose(found_array, expected, rtol=1e-4):
        raise SystemExit(f"{what}: differs from the loop by {np.max(np.abs(found_array - expected))}")
    print(f"{what}: as the loop")


def loops(sales: dict[str, Tensor], products: dict[str, Tensor]) -> tuple[Any, Any]:
    s = {name: column.to("cpu").numpy() for name, column in sales.items()}
    p = {name: column.to("cpu").numpy() for name, column in products.items()}
    table, counts = np.zeros((COUNTRIES, MONTHS)), np.zeros((PRODUCTS, COUNTRIES, MONTHS))
    for row in tqdm.trange(len(s["product"]), desc="the loop"):
        product, country, month = s["product"][row], s["country"][row], s["month"][row]
        table[country, month] += s["amount"][row] * p["price"][product] * (1 + p["tax"][product])
        counts[product, country, month] += 1
    return table, np.einsum("pcm,qcm->pq", counts, counts)


def picture(table: Tensor, pairs: Tensor, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    for axes, values, title, x, y in ((left, table, "Revenue", "month", "country"), (right, pairs, "Sold in the same country and month", "product", "product")):
        image = axes.imshow(values.to("cpu").numpy(), aspect="auto", cmap="viridis")
        axes.set(title=title, xlabel=x, ylabel=y)
        figure.colorbar(image, ax=axes)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sales", type=int, default=4000)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    sales, products = tables(options.sales, options.device)
    with bp.device(options.device):
        table = bp.compile(by_country_and_month)(sales, products)
        pairs, rows = bought_together(sales), large_sales(sales, products, 120.0)
    expected_table, expected_pairs = loops(sales, products)
    check("revenue by country and month", table, expected_table)
    check("products sold together", pairs, expected_pairs)
    print(f"{rows.shape[0]} sales of 120 and more, the largest in row {int(rows[0])}")
    options.out.mkdir(parents=True, exist_ok=True)
    picture(table, pairs, options.out / "named_dimensions.png")
    print(f"wrote {options.out / 'named_dimensions.png'}")


if __name__ == "__main__":
    main()
