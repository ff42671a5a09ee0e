"""What we add to the published model: a penalty, context, background, a whitened kernel.

Nothing is chosen on a test fold. Within the training bags of each fold, a second
cross-validation chooses the setting whose held-out *bag labels* are the likeliest: it needs no
instance label, so anyone could choose like this. The same models fitted to instance labels say
how far bag labels fall short.
"""

import numpy as np
from scipy.stats import ttest_ind_from_stats
from sklearn.preprocessing import StandardScaler

from unbag.estimators import ORLogisticRegression, SupervisedLogisticRegression
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
    cell,
    comparison_figure,
    comparison_table,
    difference,
    fit_and_measure,
    fold,
    grid,
    load_fold,
    mean_over_draws,
    published,
    published_figure,
    some_methods,
    split,
    words,
)
from unbag.pipeline import BagPipeline, kernel_pipeline
from unbag.preprocessing import BagContext, OnInstances

N_INNER = 2
#: Instances in a dictionary; more cost more and give little.
DICTIONARY = 600
PENALTIES = [0.1, 1.0, 10.0]
KERNEL_PENALTIES = [0.03, 0.1]
WIDTHS = [0.5, 1.0]
WEIGHTS = [0.5, 1.0]

LINEAR = grid(context=[0.0], width=[None], background=[False], alpha=PENALTIES)
CONTEXT = grid(context=WEIGHTS, width=[None], background=[False], alpha=PENALTIES)
BACKGROUND = grid(context=[0.0], width=[None], background=[True], alpha=PENALTIES)
KERNEL = grid(context=[0.0], width=WIDTHS, background=[False], alpha=KERNEL_PENALTIES)
BOTH = grid(context=WEIGHTS, width=WIDTHS, background=[False], alpha=KERNEL_PENALTIES)

#: Row of the table to the settings to choose from.
VARIANTS = {
    "penalty": LINEAR,
    "penalty, background": BACKGROUND,
    "penalty, context": LINEAR + CONTEXT,
    "penalty, kernel": KERNEL,
    "penalty, context, kernel": KERNEL + BOTH,
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
    if supervised:
        model = SupervisedLogisticRegression(setting["alpha"], max_iter=60)
    else:
        model = ORLogisticRegression(
            setting["alpha"], background=setting["background"], max_iter=60
        )
    if setting["width"] is None:
        steps = [
            ("scale", OnInstances(StandardScaler())), ("context", BagContext(setting["context"]))
        ]  # fmt: skip
        return BagPipeline([*steps, ("model", model.set_params(scaling=None))])
    return kernel_pipeline(
        model, context=setting["context"], scale=setting["width"], n_components=DICTIONARY,
        random_state=seed,
    )  # fmt: skip


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


def settings_of(plan: Plan, variant: str) -> list[Values]:
    """Return the settings that a variant chooses from; in a first look, every third."""
    return VARIANTS[variant][:: 3 if plan.level == "quick" else 1]


def inner_units(plan: Plan, name: str, draw: int, fold: int, setting: dict) -> list[Unit]:
    """List the fits that say how well a setting does within the training bags of a fold."""
    return [
        Unit(
            inner, name, draw, None, setting, {"inner_fold": inner_fold}, fold, plan.n_folds,
            plan.seed,
        )
        for inner_fold in range(N_INNER)
    ]  # fmt: skip


def chosen_unit(
    plan: Plan, name: str, draw: int, fold: int, setting: dict, supervised: bool
) -> Unit:
    """Return the fit of a chosen setting."""
    return Unit(
        chosen, name, draw, None, setting, {"supervised": supervised}, fold, plan.n_folds,
        plan.seed,
    )  # fmt: skip


def choice(
    plan: Plan, ledger: Results, name: str, draw: int, fold: int, variant: str
) -> Values | None:
    """Return the setting that the inner folds choose; None as long as they are not done."""
    settings = settings_of(plan, variant)
    means = []
    for setting in settings:
        of_setting = inner_units(plan, name, draw, fold, setting)
        if not all(unit in ledger for unit in of_setting):
            return None
        means.append(np.mean([ledger[unit]["log_likelihood"] for unit in of_setting]))
    return settings[int(np.argmax(means))]


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


def scores(plan: Plan, ledger: Results, name: str, variant: str, measure: str) -> np.ndarray:
    """Return a measure of the chosen settings per fold, averaged over draws."""
    supervised = variant == BOUND

    def unit(draw, fold):
        setting = choice(plan, ledger, name, draw, fold, OURS if supervised else variant)
        return chosen_unit(plan, name, draw, fold, setting, supervised)

    units_of_folds = [
        [unit(draw, fold) for draw in plan.draws(name)] for fold in range(plan.n_folds)
    ]
    return mean_over_draws(ledger, units_of_folds, measure)


def best_published(name: str) -> tuple[float | None, float | None]:
    """Return the best published accuracies: of the model, and of its bound."""
    return tuple(
        max(
            (
                figure["mean"]
                for table in (("inductive", "accuracy"), ("kernel",))
                if (figure := published_figure(*table, name, method))
            ),
            default=None,
        )
        for method in ("mlr", "slr")
    )


def accuracy_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of what each addition does to the inductive accuracy."""
    model, bound = AS_PUBLISHED

    def accuracies(row, name):
        of = plan, ledger, name
        if row in AS_PUBLISHED:
            return PUBLISHED.scores(*of, AS_PUBLISHED[row], {}, "inductive_accuracy")
        return scores(*of, row, "inductive_accuracy")

    found = {
        (row, name): accuracies(row, name)
        for row in (model, *VARIANTS, BOUND, bound)
        for name in plan.data
    }
    records = [
        {
            "data": name, "variant": row, "measure": "inductive accuracy",
            "ours": float(values.mean()), "std": float(values.std(ddof=1)),
            "best_published": best_published(name)[row in (BOUND, bound)],
            "difference": difference(
                float(values.mean()), best_published(name)[row in (BOUND, bound)]
            ),
        }
        for (row, name), values in found.items()
    ]  # fmt: skip
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


def bag_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of bag measures beside the best published method of each."""
    records, body = [], []
    for name in plan.data:
        methods = published()["bag-level"].get(name, {})
        rivals = {m: figures for m, figures in methods.items() if m not in ("slr", "dummy")}
        if not rivals:
            continue
        for measure, higher in BAG_MEASURES.items():
            values = scores(plan, ledger, name, OURS, measure)
            sign = 1 if higher else -1
            best = max(rivals, key=lambda m, k=measure, s=sign: s * rivals[m][k]["mean"])
            figure = rivals[best][measure]
            mean, std = float(values.mean()), float(values.std(ddof=1))
            test = ttest_ind_from_stats(
                mean, std, len(values), figure["mean"], figure["std"], 10, equal_var=False
            )
            verdict = "better" if sign * (mean - figure["mean"]) > 0 else "worse"
            verdict = "tied" if test.pvalue > SIGNIFICANT else verdict
            body.append(
                [
                    f"{name}, {words(measure)}",
                    cell(mean, std),
                    best,
                    f"{figure['mean']:.1f}",
                    verdict,
                ]
            )
            records.append(
                {
                    "data": name, "measure": measure, "ours": mean, "std": std,
                    "best_published_method": best, "best_published": figure["mean"],
                    "best_published_std": figure["std"], "difference": mean - figure["mean"],
                    "p_value": float(test.pvalue), "verdict": verdict,
                }
            )  # fmt: skip
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
