"""scikit-learn's own checks, for every estimator and transformer there is."""

from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from toys import MODELS, seeded
from unbag import BagContext, OnInstances, RBFDictionary, preprocessing
from unbag.paper import LSBCMM, MIMLSVM, MLR, MIMLFast

DEFAULTS = [seeded(kind) for kind in MODELS.values()]
# Those whose fit takes another way through the code.
VARIANTS = [
    MLR(sampled=0.5, random_state=0),
    LSBCMM(max_iter=30),
    MIMLSVM(0.7, random_state=0),
    MIMLFast(20, n_concepts=1, random_state=0),
]
TRANSFORMERS = [
    OnInstances(StandardScaler()),
    OnInstances(PCA()),
    BagContext(0.5),
    RBFDictionary(),
]


@parametrize_with_checks([*DEFAULTS, *VARIANTS, *TRANSFORMERS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_transformer_is_checked():
    defined = {
        name
        for name, thing in vars(preprocessing).items()
        if hasattr(thing, "fit") and thing.__module__ == preprocessing.__name__ and name[0] != "_"
    }
    assert {type(transformer).__name__ for transformer in TRANSFORMERS} == defined
