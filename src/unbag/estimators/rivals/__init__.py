"""The methods that ours is compared with, and what only they need.

============ ======================================================================
`SIM`        `sim`, over the rank loss of `rank_loss`
`MIMLFast`   `miml_fast`, trained by `miml_fast_epochs`
`LSBCMM`     `lsb_cmm`, over the mixture of `stick_breaking`, whose sticks are the
             regressions of `logistic_rows`
`MIMLSVM`    `miml_svm`, and
`MIMLNN`     `miml_nn`, over the distances between bags of `medoids`
============ ======================================================================
"""

from .lsb_cmm import LSBCMM
from .miml_fast import MIMLFast
from .miml_nn import MIMLNN
from .miml_svm import MIMLSVM
from .sim import SIM

__all__ = ["LSBCMM", "MIMLNN", "MIMLSVM", "SIM", "MIMLFast"]
