"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

Optional parts of the package (its extras other than ``dev``) are left out.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
for requirement in project["dependencies"] + project["optional-dependencies"]["dev"]:
    bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement)
    if bound is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} must read name>=version.")
    print("{}=={}".format(*bound.groups()))
