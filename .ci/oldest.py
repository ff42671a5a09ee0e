"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

They are those of the package and of everything that the tests need, which is the extra ``dev`` with
the extras that it names. The other optional parts of the package are left out.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
requirements = project["dependencies"] + extras["dev"]
for requirement in requirements:
    if of_the_package := re.fullmatch(r"unbag\[([\w,]+)\]", requirement):
        for extra in of_the_package[1].split(","):
            requirements += extras[extra]
        continue
    bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement)
    if bound is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} must read name>=version.")
    print("{}=={}".format(*bound.groups()))
