"""Instance accuracy on new bags whose label sets are not known: Tables 3 and 4 of the paper.

Every method is fitted to the training bags of each fold; each rival is reported at the setting
with the best mean over the test folds, by instance accuracy or by Hamming loss.
"""

from unbag_reproduce.accuracy import accuracy_study
from unbag_reproduce.comparison import Comparison, fit_fold, some_methods

STUDY = accuracy_study(
    "inductive",
    "instance accuracy on new bags, tuned by instance accuracy and by Hamming loss",
    Comparison(
        fit_fold,
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
        "SLR sees instance labels, the dummy sees nothing, and the rows with more steps or unbag's "
        "default are not the paper's: none of them competes for bold."
    ),
    remarks="""\
MLR and SLR take 50 gradient steps. The paper has 50 for MLR and does not say how it fitted SLR. On
HJA both fall short of its figures. With 200 steps both come within a point
([convergence](#convergence)), as do the measures of bags ([bag-level](#bag-level)). So our
steps seem to go less far than the paper's. The reason is open: the paper names backtracking, but
not its constants, how features were scaled or where a fit starts. On the letters 200 steps change a
point at most, and a solver that goes all the way loses 6 to 8 points.

The paper gives epochs of MIMLfast only for kernels (100, [kernel](#kernel)). Here it has ten, the
number of its authors; [wider](#wider) shows more. SIM has no published code: it is rebuilt from its
description, and tuned over larger penalties than the paper's as well ([differences](#differences)).
""",
)
