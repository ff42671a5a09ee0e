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
    "_random.py", "bags.py", "labels.py", "tagging.py", "metrics.py", "pipeline.py",
    "preprocessing.py",
    "datasets", "union", "fitting", "estimators", "torch", "model_selection/folds.py",
    "model_selection/methods.py", "model_selection/scorers.py",
)  # fmt: skip
#: And those of the experiments.
OF_EXPERIMENTS = ("approximations.py", "data.py", "datasets", "networks.py")


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
