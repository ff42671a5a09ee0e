"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

They are those of the package and of everything that the tests need, which is the extra ``dev`` with
the extras that it names, and what the reproduction of the paper needs. The other optional parts of
the package are left out.
"""

import re
import tomllib
from pathlib import Path

repository = Path(__file__).parents[1]
project, reproduction = (
    tomllib.loads((repository / folder / "pyproject.toml").read_text())["project"]
    for folder in (".", "reproduction")
)
extras = project["optional-dependencies"]
requirements = project["dependencies"] + extras["dev"] + reproduction["dependencies"]
for requirement in requirements:
    if of_the_package := re.fullmatch(r"unbag\[([\w,]+)\]", requirement):
        for extra in of_the_package[1].split(","):
            requirements += extras[extra]
        continue
    bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement)
    if bound is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} must read name>=version.")
    print("{}=={}".format(*bound.groups()))
