"""MSRC v2: segments of photographs, and the things seen in each photograph."""

from pathlib import Path

import numpy as np
from scipy import sparse

from .home import Arrays, Source, arrays_of

CLASSES = (
    "building", "grass", "tree", "cow", "horse", "sheep", "sky", "mountain",
    "aeroplane", "water", "face", "car", "bicycle", "flower", "sign", "bird",
    "book", "chair", "road", "cat", "dog", "body", "boat",
)  # fmt: skip


def convert_msrcv2(folder: Path) -> Arrays:
    """Turn the published file into arrays: partial-label data, which do not know bags.

    ``data`` is (n_instances, 48), ``target`` and ``partial_target`` are (23, n_instances), the true
    class and the classes of the photograph. If a variable ``bag_id`` (n_instances,) has been added
    to the file, bags are taken from there. Otherwise, neighbours with the same classes make a bag,
    which joins the many neighbouring photographs with the same classes: about 360 bags instead of
    591. The arrays have a note on that.
    """
    from unbag.tables.formats.mat import load_variables

    path = next(folder.rglob("MSRCv2.mat"))
    required = ["data", "target", "partial_target"]
    variables = load_variables(path, [*required, "bag_id"])
    if missing := [name for name in required if name not in variables]:
        raise ValueError(f"{path} has no variable {', '.join(missing)}.")
    X = np.asarray(variables["data"], dtype=float)
    target, candidates = (_dense(variables[name]) for name in ("target", "partial_target"))
    expected = len(CLASSES), len(X)
    for name, values in [("target", target), ("partial_target", candidates)]:
        if values.shape != expected:
            raise ValueError(f"{path}: {name} has shape {values.shape}, not {expected}.")
    wrong = np.flatnonzero((target.sum(axis=0) != 1) | (target > candidates).any(axis=0))
    if wrong.size:
        raise ValueError(
            f"{path}: instance {wrong[0]} must have one class in target, and that class in "
            "partial_target."
        )
    labels = target.argmax(axis=0)
    if "bag_id" in variables:
        bag_id = np.asarray(variables["bag_id"]).ravel()
        if bag_id.size != len(X):
            raise ValueError(f"{path}: bag_id has {bag_id.size} entries for {len(X)} instances.")
        _, first, bag_of_instance = np.unique(bag_id, return_index=True, return_inverse=True)
        # Bags come in the order in which they first appear.
        bag_of_instance = np.argsort(np.argsort(first))[bag_of_instance]
        return arrays_of(X, labels, bag_of_instance, CLASSES)
    begins = np.any(candidates[:, 1:] != candidates[:, :-1], axis=0)
    note = (
        "the published file does not say which segments belong to one photograph, so neighbours "
        "with the same labels were taken for one bag: these are not the paper's."
    )
    return arrays_of(X, labels, np.append(0, np.cumsum(begins)), CLASSES, note=note)


def _dense(matrix):
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix) != 0


MSRCV2 = Source(
    name="msrcv2",
    file="msrcv2.npz",
    folder="msrcv2",
    published=("MSRCv2.mat",),
    page="http://palm.seu.edu.cn/zhangml/files/MSRCv2.rar (unpack it first)",
    description="""\
MSRC v2: segments of photographs ("MSCV2" in the paper).

591 bags (photographs), 1,758 instances (segments), 48 features (histograms of gradients and
colours), 23 classes (what a segment shows). Each bag has the labels of its instances.

Source: Microsoft Research Cambridge object recognition image database, version 2; features by
Briggs et al.; as partial-label data at http://palm.seu.edu.cn/zhangml/files/MSRCv2.rar
Licence: non-commercial research use
Cite: J. Winn, A. Criminisi and T. Minka (2005), "Object categorization by learned universal visual
dictionary", ICCV; F. Briggs, X. Z. Fern and R. Raich (2012), "Rank-loss support instance machines
for MIML instance annotation", KDD.
""",
    convert=convert_msrcv2,
)
