"""The paper in one room: Pham, Raich and Fern, *Dynamic Programming for Instance Annotation*.

============= ============== ==================================================================
              `forward`      section 4.2.2, Algorithm 1: the E-step by the forward algorithm
              `fast`         section 4.2.3, Algorithm 2: the E-step by FAST
`MLR`         `mlr`          sections 3 to 5: the model, EM, pruning, stochastic steps
`SLR`         `slr`          its upper bound, told the label of every instance
`SIM`         `sim`          section 6.2, a rival
`MIMLFast`    `mimlfast`     section 6.2, a rival
`LSBCMM`      `lsbcmm`       section 6.2, a rival, over the regressions of `logistic_rows`
`MIMLSVM`     `mimlsvm`      section 6.4, a rival, over the distances of `medoids`
`MIMLNN`      `mimlnn`       section 6.4, a rival, over the distances of `medoids`
============= ============== ==================================================================

All are estimators under the contract of `unbag.estimators.contract`. Nothing else in the package
is built on them: `unbag compare` and the reproduction use them.
"""

from .lsbcmm import LSBCMM
from .mimlfast import MIMLFast
from .mimlnn import MIMLNN
from .mimlsvm import MIMLSVM
from .mlr import MLR
from .sim import SIM
from .slr import SLR

__all__ = ["LSBCMM", "MIMLNN", "MIMLSVM", "MLR", "SIM", "SLR", "MIMLFast"]
