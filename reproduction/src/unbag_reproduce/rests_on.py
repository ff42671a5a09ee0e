"""What the records of tables rest on: the units of work whose results they show.

Settings are those that were chosen; the fits that chose them are not among these units.
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from itertools import product

from unbag.model_selection.methods import METHODS
from unbag.model_selection.statistics import words

from .additions import LOSSES, both_ways_units, row_units
from .e_steps import count_unit, e_step_unit
from .ledger import Results
from .plan import Plan, Study
from .rivals import RIVALS
from .studies import (
    beyond,
    complexity,
    convergence,
    dictionary,
    guesses,
    kernel,
    partitions,
    pruning,
    sampling,
    stability,
    training_size,
    violations,
    wider,
)
from .tables import as_word
from .timing import INFERENCES, point_units, settings
from .unit import Unit, Values

#: Method to its title in tables.
TITLES = {key: each.title for key, each in METHODS.items()}


def flat(rows: list[list[Unit]]) -> list[Unit]:
    """Return units that come in lists over draws or folds."""
    return [unit for row in rows for unit in row]


def key_of(title: str, titles: Mapping[str, str]) -> str:
    """Return the first key of a title; raise a KeyError if none has it."""
    for key, each in titles.items():
        if each == title:
            return key
    raise KeyError(title)


def of_guesses(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits by one scaling of features, or by one line search."""
    searches = {each.title: each for each in guesses.SEARCHES}
    choice = (
        guesses.SCALINGS[record["scaling"]]
        if table == "guesses-scaling"
        else searches[record["search"]]
    )
    return flat(guesses.units_of(plan, record["data"], record["method"].lower(), choice))


def of_convergence(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits with so many steps."""
    by_lbfgs = record["method"].endswith(convergence.QUASI_NEWTON)
    solver = convergence.QUASI_NEWTON if by_lbfgs else ""
    method = record["method"].removesuffix(solver).lower()
    setting = convergence.settings(plan.level)[solver, as_word(record["steps"])]
    return flat(convergence.units_of(plan, record["data"], method, setting))


def of_training_size(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits to a share of the bags; what is read off the curves rests on all of them."""
    titles = {key: each.title for key, each in training_size.COMPARED.items()}
    if "training_percent" in record:
        of = key_of(record["method"], titles), setting_of(record), int(record["training_percent"])
        repeats = range(training_size.REPEATS[plan.level])
        return [training_size.share_unit(plan, record["data"], *of, each) for each in repeats]
    return flat(
        [
            training_size.best_units(plan, ledger, record["data"], *point)[1]
            for point in product(titles, training_size.PERCENTS)
        ]
    )


def of_bag_level(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return nothing: constant answers are counted, not fitted."""
    return []


def of_kernel(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits that are timed."""
    method = key_of(record["method"], TITLES)
    return flat(kernel.timed_units(plan, ledger, record["data"], method))


def of_complexity(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return what is counted, or timed, of E-steps."""
    if table == "complexity-size":
        method = key_of(record["method"], complexity.OVER_N)
        n_labels = int(str(record["labels"]).split()[0])
        return [complexity.size_unit(plan, method, n_labels, int(record["instances"]))]
    name = record["data"]
    if table == "complexity-time":
        method = key_of(record["method"], complexity.TIMED)
        return [e_step_unit(plan, name, draw, method) for draw in plan.draws(name)]
    if table == "complexity-share":
        return [complexity.profile_unit(plan, name, key_of(record["inference"], complexity.OVER_N))]
    counted = key_of(record["steps"], complexity.COUNTED)
    fitted = {"adaptive_uniform": False, "adaptive_fitted": True}.get(counted)
    if fitted is None:
        return [count_unit(plan, name)]
    return [complexity.visit_unit(plan, name, draw, fitted) for draw in plan.draws(name)]


def of_pruning(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits without some bags, or what is counted and timed of them."""
    name = record["data"]
    if table != "pruning-ratio":
        percents = [int(record["percent"])]
        return flat_points(plan, "em", "prune", name, record["line"], percents)
    what = key_of(record["of"], pruning.GAINS)
    kind, _, inference = what.rpartition("_")
    if kind == "e_step":
        return [
            e_step_unit(plan, name, draw, inference, percent)
            for draw in plan.draws(name)
            for percent in (100, 100 - pruning.TYPICAL)
        ]
    if kind == "fit":
        percents = [0, pruning.TYPICAL]
        return flat_points(plan, "em", "prune", name, INFERENCES[inference], percents)
    return [pruning.cost_unit(plan, name)]


def of_sampling(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits to samples of bags."""
    percents = [int(record["percent"])]
    if table == "sampling-speed-up":
        percents = list(dict.fromkeys([*percents, sampling.WHOLE]))
    return flat_points(
        plan, "stochastic", "sample_fraction", record["data"], record["line"], percents
    )


def flat_points(
    plan: Plan, model: str, parameter: str, name: str, line: str, percents: list[int]
) -> list[Unit]:
    """Return the fits of some points of a curve."""
    return [
        unit
        for percent in percents
        for unit in flat(point_units(plan, name, model, settings(parameter, percent)[line]))
    ]


def of_dictionary(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits with a share of the dictionary."""
    both_ways = table == "dictionary-columns"
    scaling = None if record.get("columns") == "as they are" else "standard"
    percent = int(record["percent"])
    return flat(dictionary.units_at(plan, record["data"], percent, scaling, both_ways))


def of_beyond(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits of a row, or of a rival."""
    rivals = {key: each.title for key, each in RIVALS.methods.items()}
    if record.get("method") in rivals.values():
        method = key_of(record["method"], rivals)
        return flat(RIVALS.units_of(plan, record["data"], method, setting_of(record)))
    row = (
        record.get("variant") or record.get("loss") or record.get("method") or beyond.OF_BAGS[table]
    )
    if table == "beyond-both-ways":
        return flat(both_ways_units(plan, ledger, record["data"], row))
    # Both tables have differences from another row, too.
    rows = [row, next(iter(LOSSES))] if "loss" in record else [row]
    return flat([fold for each in rows for fold in row_units(plan, ledger, record["data"], each)])


def of_violations(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits to labels that were changed."""
    titles = {key: each.title for key, each in violations.READINGS.items()}
    of = key_of(record["method"], titles), record["kind"], float(record["probability"])
    return [violations.fold_unit(plan, record["data"], *of, place) for place in range(plan.n_folds)]


def of_stability(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the answers of kernels for bags of one shape and scale."""
    shape = {"n_labels": "labels", "n_instances": "instances", "scale": "scale"}
    return [
        unit
        for unit in stability.units(plan)
        if all(unit.condition[key] == record[entry] for key, entry in shape.items())
    ]


def of_partitions(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits on all partitions."""
    measure = record["measure"].replace(" ", "_")
    # Instances and bags have a dummy each, of the same title.
    method = key_of(
        record["method"], {k: t for k, t in TITLES.items() if partitions.has(k, measure)}
    )
    return flat(partitions.partition_units(plan, record["data"], method, setting_of(record)))


def of_wider(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits at the setting of a wider grid."""
    measure = key_of(record["measure"], {each: words(each) for each in wider.WIDER})
    method = key_of(record["method"], TITLES)
    return flat(wider.WIDER[measure].units_of(plan, record["data"], method, setting_of(record)))


#: Experiment to what its records rest on, where that is not what its methods do in all folds.
RESTS_ON: dict[str, Callable[[Plan, Results, str, Values], list[Unit]]] = {
    "guesses": of_guesses,
    "convergence": of_convergence,
    "training-size": of_training_size,
    "bag-level": of_bag_level,
    "kernel": of_kernel,
    "complexity": of_complexity,
    "pruning": of_pruning,
    "sampling": of_sampling,
    "dictionary": of_dictionary,
    "beyond": of_beyond,
    "violations": of_violations,
    "stability": of_stability,
    "partitions": of_partitions,
    "wider": of_wider,
}


def units_behind(
    study: Study, plan: Plan, ledger: Results, table: str, record: Values
) -> list[Unit]:
    """Return the units of work that a record of a table rests on; none where nothing is fitted."""
    if study.comparison is not None and "setting" in record:
        titles = {key: each.title for key, each in study.comparison.methods.items()}
        if record["method"] in titles.values():
            of = key_of(record["method"], titles), setting_of(record)
            return flat(study.comparison.units_of(plan, record["data"], *of))
    if study.name in RESTS_ON:
        return RESTS_ON[study.name](plan, ledger, table, record)
    # All that was done on the same data: more than is needed, but nothing is left out.
    return [
        unit
        for unit in study.units(plan, ledger)
        if unit in ledger and unit.data == record.get("data")
    ]


def setting_of(record: Values) -> Values:
    """Return the setting of a record, as a table has it or as it was read from a file."""
    setting = record["setting"]
    return ast.literal_eval(setting) if isinstance(setting, str) else setting


def units_shown(
    study: Study, plan: Plan, ledger: Results, records: Iterable[tuple[str, Values]]
) -> list[Unit]:
    """Return the units of work that tables show, given their records with the names of tables.

    What is not known any more of records of another version, or where a ledger has gaps, is left
    out.
    """
    found: dict[Unit, None] = {}
    for table, record in records:
        try:
            found |= dict.fromkeys(units_behind(study, plan, ledger, table, record))
        except KeyError:
            continue
    return list(found)
