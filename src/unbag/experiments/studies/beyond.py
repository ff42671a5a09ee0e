"""What we add to the published model: a penalty, context, background, a whitened kernel.

Nothing is chosen on a test fold. Within the training bags of each fold, a second
cross-validation chooses the setting whose held-out *bag labels* are the likeliest: it needs no
instance label, so anyone could choose like this. The same models fitted to instance labels say
how far bag labels fall short.
"""

import numpy as np
from scipy.stats import ttest_ind_from_stats
from sklearn.preprocessing import StandardScaler

from unbag.experiments import (
    BAG_MEASURES,
    SIGNIFICANT,
    Comparison,
    Figure,
    Plan,
    Results,
    Study,
    Table,
    Unit,
    Values,
    best_setting,
    cell,
    comparison_figure,
    comparison_table,
    difference,
    fit_and_measure,
    fold,
    grid,
    load_fold,
    mean_over_draws,
    penalised_bound,
    penalised_model,
    published,
    published_figure,
    record_cell,
    some_methods,
    split,
    spread,
    words,
)
from unbag.pipeline import BagPipeline, kernel_pipeline
from unbag.preprocessing import BagContext, OnInstances

N_INNER = 2
#: Instances in a dictionary; more cost more and give little.
DICTIONARY = 600
#: What each part of a setting is chosen from: of a linear model, of a kernel, and with context.
LINEAR = {"context": [0.0], "width": [None], "background": [False], "alpha": [0.1, 1.0, 10.0]}
KERNEL = {"context": [0.0], "width": [0.5, 1.0], "background": [False], "alpha": [0.03, 0.1]}
CONTEXT = {"context": [0.5, 1.0]}

#: Row of the table to the settings to choose from.
VARIANTS = {
    "penalty": grid(**LINEAR),
    "penalty, background": grid(**LINEAR | {"background": [True]}),
    "penalty, context": grid(**LINEAR) + grid(**LINEAR | CONTEXT),
    "penalty, kernel": grid(**KERNEL),
    "penalty, context, kernel": grid(**KERNEL) + grid(**KERNEL | CONTEXT),
}
OURS = list(VARIANTS)[-1]
#: The settings of `OURS`, fitted to instance labels.
BOUND = "the same, told instance labels"
#: Rows of the table that are made as published.
AS_PUBLISHED = {"published model": "mlr", "published bound, told instance labels": "slr"}
PUBLISHED = Comparison(fold, some_methods(*AS_PUBLISHED.values()))


def build(setting: Values, supervised: bool, seed: int) -> BagPipeline:
    """Build a model from its setting.

    Parameters
    ----------
    setting : dict
        ``context``: weight of the bag's mean; ``width`` of the kernel, None for none;
        ``background``; ``alpha``.
    supervised : bool
        Whether it learns from instance labels.
    seed : int

    Returns
    -------
    BagPipeline
    """
    model = (
        penalised_bound(setting["alpha"], max_iter=60)
        if supervised
        else penalised_model(setting["alpha"], background=setting["background"], max_iter=60)
    )
    if setting["width"] is not None:
        return kernel_pipeline(
            model, context=setting["context"], scale=setting["width"], n_components=DICTIONARY,
            random_state=seed,
        )  # fmt: skip
    return BagPipeline(
        [
            ("scale", OnInstances(StandardScaler())),
            ("context", BagContext(setting["context"])),
            ("model", model.set_params(scaling=None)),
        ]
    )


def inner(unit: Unit) -> dict[str, float]:
    """Fit to a part of the training bags, and find how likely the others' label sets are.

    Returns
    -------
    dict
        ``log_likelihood``: mean over the held-out bags.
    """
    bags, y, _, _ = load_fold(unit)
    train, held_out = split(len(bags), N_INNER, unit.condition["inner_fold"], unit.seed)
    model = build(unit.setting, False, unit.seed).fit(bags[train], y[train])
    return {"log_likelihood": float(model.log_likelihood(bags[held_out], y[held_out]).mean())}


def chosen(unit: Unit) -> dict[str, float]:
    """Fit the chosen setting to all training bags of a fold, and measure on its test bags."""
    model = build(unit.setting, unit.condition["supervised"], unit.seed)
    return fit_and_measure(model, *load_fold(unit))


def inner_units(plan: Plan, name: str, draw: int, fold: int, setting: Values) -> list[Unit]:
    """List the fits that say how well a setting does within the training bags of a fold."""
    return [
        Unit(
            inner, name, draw, setting=setting, condition={"inner_fold": inner_fold}, fold=fold,
            n_folds=plan.n_folds, seed=plan.seed,
        )
        for inner_fold in range(N_INNER)
    ]  # fmt: skip


def chosen_unit(
    plan: Plan, name: str, draw: int, fold: int, setting: Values | None, supervised: bool
) -> Unit:
    """Return the fit of a chosen setting."""
    return Unit(
        chosen, name, draw, setting=setting or {}, condition={"supervised": supervised}, fold=fold,
        n_folds=plan.n_folds, seed=plan.seed,
    )  # fmt: skip


def settings_of(plan: Plan, variant: str) -> list[Values]:
    """Return the settings that a variant chooses from; in a first look, every third."""
    return VARIANTS[variant][:: 3 if plan.level == "quick" else 1]


def choice(
    plan: Plan, ledger: Results, name: str, draw: int, fold: int, variant: str
) -> Values | None:
    """Return the setting that the inner folds choose; None as long as they are not done."""
    settings = settings_of(plan, variant)
    fits = [inner_units(plan, name, draw, fold, setting) for setting in settings]
    if not all(unit in ledger for units in fits for unit in units):
        return None
    return settings[
        best_setting([[ledger[unit]["log_likelihood"] for unit in units] for units in fits])
    ]


def case_units(
    plan: Plan, ledger: Results, name: str, draw: int, fold: int, variant: str
) -> list[Unit]:
    """List the inner fits of a variant on one fold; once done, those of what they choose."""
    case = name, draw, fold
    setting = choice(plan, ledger, *case, variant)
    if setting is None:
        settings = settings_of(plan, variant)
        return [unit for each in settings for unit in inner_units(plan, *case, each)]
    supervised = (False, True) if variant == OURS else (False,)
    return [chosen_unit(plan, *case, setting, each) for each in supervised]


def units(plan: Plan, ledger: Results) -> list[Unit]:
    """List the inner fits, then those of the settings that they choose."""
    found = [
        unit
        for fold in range(plan.n_folds)
        for name in plan.data
        for draw in plan.draws(name)
        for variant in VARIANTS
        for unit in case_units(plan, ledger, name, draw, fold, variant)
    ]
    # Variants share settings, and each is fitted once.
    return list(dict.fromkeys([*found, *PUBLISHED.units(plan)]))


def scores(plan: Plan, ledger: Results, name: str, row: str, measure: str) -> np.ndarray:
    """Return a measure of a row of the table per fold, averaged over draws."""
    if row in AS_PUBLISHED:
        return PUBLISHED.scores(plan, ledger, name, AS_PUBLISHED[row], {}, measure)
    variant = OURS if row == BOUND else row
    units_of_folds = [
        [
            chosen_unit(
                plan, name, draw, fold, choice(plan, ledger, name, draw, fold, variant),
                row == BOUND,
            )
            for draw in plan.draws(name)
        ]
        for fold in range(plan.n_folds)
    ]  # fmt: skip
    return mean_over_draws(ledger, units_of_folds, measure)


def best_published(name: str, method: str) -> float | None:
    """Return the best published accuracy of the model, or of its bound, linear or kernel."""
    figures = [
        published_figure(*table, name, method) for table in (("inductive", "accuracy"), ("kernel",))
    ]
    return max((figure["mean"] for figure in figures if figure), default=None)


def accuracy_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of what each addition does to the inductive accuracy."""
    model, bound = AS_PUBLISHED
    found = {
        (row, name): scores(plan, ledger, name, row, "inductive_accuracy")
        for row in (model, *VARIANTS, BOUND, bound)
        for name in plan.data
    }
    records = []
    for (row, name), values in found.items():
        best = best_published(name, "slr" if row in (BOUND, bound) else "mlr")
        records.append(
            {
                "data": name, "variant": row, "measure": "inductive accuracy", **spread(values),
                "best_published": best, "difference": difference(float(values.mean()), best),
            }
        )  # fmt: skip
    short = [
        f"{name} {found[BOUND, name].mean() - found[OURS, name].mean():.1f}" for name in plan.data
    ]
    return comparison_table(
        "beyond-accuracy",
        "Instance accuracy (%), bag labels not known: what each addition does",
        records,
        [
            "In brackets: the best published figure of the model, linear or kernel (for the rows "
            "told instance labels: of those), and the difference. Settings are chosen by the "
            f"likelihood of held-out bag labels in {N_INNER} inner folds of the training bags; the "
            f"published figures are the best of their grids on the test folds. {plan.describe()}.",
            f"By how much bag labels fall short of instance labels, same model: {', '.join(short)} "
            "points.",
        ],
        row="variant",
        column="data",
        write=lambda record: cell(record["ours"], record["std"], record["best_published"]),
    )


def beside_best(values: np.ndarray, rivals: Values, measure: str) -> Values:
    """Return the entries of a record that set a measure beside the best published method's."""
    sign = 1 if BAG_MEASURES[measure] else -1
    best = max(rivals, key=lambda method: sign * rivals[method][measure]["mean"])
    figure, ours = rivals[best][measure], spread(values)
    gain = ours["ours"] - figure["mean"]
    p_value = ttest_ind_from_stats(
        *ours.values(), len(values), figure["mean"], figure["std"], 10, equal_var=False
    ).pvalue
    verdict = "better" if sign * gain > 0 else "worse"
    return {
        **ours, "best_published_method": best, "best_published": figure["mean"],
        "best_published_std": figure["std"], "difference": gain, "p_value": float(p_value),
        "verdict": "tied" if p_value > SIGNIFICANT else verdict,
    }  # fmt: skip


def bag_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of bag measures beside the best published method of each."""
    rivals = {
        name: {m: figures for m, figures in methods.items() if m not in ("slr", "dummy")}
        for name, methods in published()["bag-level"].items()
    }
    records = [
        {
            "data": name, "measure": measure,
            **beside_best(scores(plan, ledger, name, OURS, measure), rivals[name], measure),
        }
        for name in plan.data
        if rivals.get(name)
        for measure in BAG_MEASURES
    ]  # fmt: skip
    body = [
        [
            f"{each['data']}, {words(each['measure'])}", record_cell(each),
            each["best_published_method"], f"{each['best_published']:.1f}", each["verdict"],
        ]
        for each in records
    ]  # fmt: skip
    return Table(
        "beyond-bags",
        f"Measures of bag label sets (%), {OURS}",
        ["", "ours", "best published method", "published", "verdict"],
        body,
        records,
        [
            "Verdict: Welch's t-test (two-tailed, 95 %) between our folds and the published mean "
            f"and deviation. {plan.describe()}."
        ],
    )


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make both tables and a figure of the accuracies."""
    accuracies, bags = accuracy_table(plan, ledger), bag_table(plan, ledger)
    figure = comparison_figure(
        "beyond",
        "What each addition does",
        accuracies.records,
        x_label="instance accuracy, %",
        row="variant",
        published="best_published",
    )
    return [accuracies, *([bags] if bags.records else []), figure]


STUDY = Study(
    "beyond",
    "what a penalty, context, background and kernels add, chosen without test folds (ours)",
    units=units,
    present=present,
    remarks="""\
Settings are chosen by bag labels alone, within the training bags: what anyone could do who has no
instance labels at all. The published figures they stand beside are the best of their grids on the
very folds that are reported.
""",
)
