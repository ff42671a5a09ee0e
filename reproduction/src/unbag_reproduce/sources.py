"""A fingerprint of the code that a result depends on.

A result stays true as long as the code that computed it is the same. Of the package, that is what
reads data, infers, fits and measures; and of the experiments, the file of the task.
"""

import ast
from functools import cache
from hashlib import sha256
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
#: Files and folders of the package that results depend on, whatever the task.
COMPUTING = (
    "_random.py", "bags.py", "labels.py", "metrics.py", "model_selection", "pipeline.py",
    "preprocessing.py", "datasets", "union", "fitting", "estimators", "torch",
    "experiments/data.py", "experiments/methods.py", "experiments/networks.py",
)  # fmt: skip


@cache
def fingerprint(task: str) -> str:
    """Return twelve digits that change with the code that a task runs.

    Parameters
    ----------
    task : str
        As in the description of a `Unit`, such as ``"studies.kernel.fold"``.
    """
    module = task.rpartition(".")[0].replace(".", "/")
    parts = [PACKAGE / part for part in (*COMPUTING, f"experiments/{module}.py")]
    files = {file for part in parts for file in (part.rglob("*.py") if part.is_dir() else [part])}
    digest = sha256()
    for file in sorted(file for file in files if file.exists()):
        digest.update(f"{file.relative_to(PACKAGE).as_posix()}\n{statements(file)}\n".encode())
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
