"""Instance accuracy on new bags whose label sets are not known: Tables 3 and 4 of the paper.

Every method is fitted to the training bags of each fold; each rival is reported at the setting
with the best mean over the test folds, by instance accuracy or by Hamming loss.
"""

from unbag_reproduce import BOLD, Comparison, fold, some_methods
from unbag_reproduce.accuracy import accuracy_study

STUDY = accuracy_study(
    "inductive",
    "instance accuracy on new bags, tuned by instance accuracy and by Hamming loss",
    Comparison(
        fold,
        some_methods(
            "mlr",
            "mlr-200",
            "mlr-end",
            "unbag",
            "sim",
            "mimlfast",
            "lsbcmm",
            "slr",
            "slr-200",
            "slr-end",
            "dummy",
        ),
        tuned_by=("inductive_accuracy", "hamming_loss"),
    ),
    labels="not known",
    figure_title="Instance accuracy on new bags",
    note=(
        f"In brackets: published, and the difference. {BOLD} SLR sees instance labels, the dummy "
        "nothing; more steps than published and unbag's default are not the paper's: they stay "
        "outside."
    ),
    remarks="""\
MLR and SLR take 50 gradient steps, as the paper does for MLR; it does not say how SLR was fitted.
On HJA both fall short of its figures then; with 200 steps both come within a point of them
([convergence](#convergence)), and so do the measures of bags ([bag-level](#bag-level)). So our
steps seem to go less far than the paper's. Why is an open question: the paper names backtracking,
but neither its constants, nor how features were scaled, nor where a fit starts. On the letters 200
steps change a point at most, and a solver that goes all the way loses 6 to 8 points; why single
figures differ there is listed [by itself](#differences).

MIMLfast's settings are drawn from the published grid. The paper gives its epochs only for kernels,
100 ([kernel](#kernel)); here they are ten, its authors' number, and what more of them do is in
[wider](#wider). Which scale its features had is not known, so either is tried. SIM has no published
code: it is rebuilt from its description, and tuned over larger values than the paper's, too; a note
below each table has it at the paper's own. LSB-CMM is tried with either scale.
""",
)
