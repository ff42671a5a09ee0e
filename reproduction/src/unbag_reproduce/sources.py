"""A fingerprint of the code that a result depends on.

A result stays true as long as the code that computed it is the same. Of the package `unbag`, that
is what reads data, infers, fits and measures; and of the experiments, what their data and networks
are, and the file of the task.
"""

import ast
from functools import cache
from hashlib import sha256
from pathlib import Path

import unbag

PACKAGE = Path(unbag.__file__).parent
EXPERIMENTS = Path(__file__).parent
#: Files and folders of the package that results depend on, whatever the task.
COMPUTING = (
    "_random.py", "bags.py", "labels.py", "metrics.py", "pipeline.py", "preprocessing.py",
    "datasets", "union", "fitting", "estimators", "torch", "model_selection/folds.py",
    "model_selection/methods.py", "model_selection/scorers.py",
)  # fmt: skip
#: And those of the experiments.
OF_EXPERIMENTS = ("approximations.py", "data.py", "datasets", "networks.py")
#: The experiments were `unbag.experiments` once. When they moved here, files and imports got other
#: names, but what they compute stayed the same. So the fingerprints of the sources just before the
#: move stand for those just after it, by the file of the task: what either made, the other would
#: make as well. Tasks have the names that they had, relative to the package of the experiments.
MOVED: dict[str, str] = {
    "14936e3d46e0": "a5e9f66a21e5",  # comparison
    "86029f1f63de": "2abeb1261fe4",  # e_steps
    "4ac65dfd94b1": "fa8dc1ddd001",  # nested
    "5e8feb750d73": "3b80a87705db",  # rivals
    "51d63c2f0de8": "cba185e6e81f",  # timing
    "4339a9e1b504": "6ed7ae76da49",  # studies.complexity
    "7c483e25e887": "fdbeff92d572",  # studies.convergence
    "b8d9c55634f7": "6b59ec80b10d",  # studies.distances
    "ee60929613a7": "49a2ada19085",  # studies.kernel
    "d14786f715ad": "ebb606424851",  # studies.pruning
    "9925210ed262": "2dc1f20dadc4",  # studies.stability
    "56b0f9f06fd6": "d59010bc567f",  # studies.training_size
    "5020dd9797f5": "3ee3388f0013",  # studies.violations
}


@cache
def fingerprint(task: str) -> str:
    """Return twelve digits that change with the code that a task runs.

    Parameters
    ----------
    task : str
        As in the description of a `Unit`, such as ``"studies.kernel.fold"``.
    """
    module = task.rpartition(".")[0].replace(".", "/")
    digest = sha256()
    for root, parts in (
        (PACKAGE, COMPUTING), (EXPERIMENTS, (*OF_EXPERIMENTS, f"{module}.py")),
    ):  # fmt: skip
        paths = [root / part for part in parts]
        files = {
            file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])
        }
        for file in sorted(file for file in files if file.exists()):
            name = file.relative_to(root.parent).as_posix()
            digest.update(f"{name}\n{statements(file)}\n".encode())
    return digest.hexdigest()[:12]


def is_current(mark: str, task: str) -> bool:
    """Return whether a fingerprint is that of the sources as they are.

    Parameters
    ----------
    mark : str
        A fingerprint that was kept with a result.
    task : str
        What gave the result.
    """
    return MOVED.get(mark, mark) == fingerprint(task)


@cache
def statements(file: Path) -> str:
    """Return the source of a file without docstrings, comments and empty lines."""
    source = file.read_text(encoding="utf-8")
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            text = slice(node.lineno - 1, node.end_lineno)
            lines[text] = [""] * len(lines[text])
    return "\n".join(line for line in lines if line.strip() and not line.strip().startswith("#"))
