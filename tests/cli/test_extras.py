"""What works where no extra is installed, and what says which extra to install."""

import sys

import pyarrow.csv
import pyarrow.parquet
import pytest

from toys import ROLES
from unbag import demo
from unbag._messages import MISSING, MissingExtraError, require


class NoExtras:
    """Finds modules that only extras bring to be missing."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def no_extras(monkeypatch):
    """Hide the modules that only extras bring."""
    for name in [name for name in sys.modules if name.partition(".")[0] in MISSING]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoExtras, *sys.meta_path])


def to_parquet(path):
    table = pyarrow.csv.read_csv(path)
    pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("convert", [lambda path: path, to_parquet], ids=["csv", "parquet"])
def test_a_table_needs_no_extra(no_extras, words, run, convert):
    table = convert(words)
    model, out = table.with_name("m.unbag"), table.with_name(f"out{table.suffix}")
    for command in (
        ("fit", table, *ROLES, "-o", model, "--max-iter", "5"),
        ("annotate", model, table, "-o", out),
        ("predict", model, table, "-o", out),
        ("evaluate", model, table),
        ("report", model, table, "-o", table.with_name("report.html")),
    ):
        code, _, errors = run(*command)
        assert code == 0, errors


@pytest.mark.parametrize("module", MISSING)
def test_what_is_missing_is_named_with_what_brings_it(module, no_extras):
    brings = r'"\.\[\w+\]"'
    with pytest.raises(MissingExtraError, match=rf"run pip install {brings} in unbag's") as error:
        require(module)
    assert error.value.name == module


def test_a_module_that_does_not_load_is_no_missing_extra(monkeypatch, tmp_path):
    (tmp_path / "broken.py").write_text("import surely_not_installed")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed") as error:
        require("broken")
    assert not isinstance(error.value, MissingExtraError)


def test_the_demo_shows_its_table_without_a_picture(no_extras, tmp_path, capsys):
    demo.digits(tmp_path / "demo")
    printed = " ".join(capsys.readouterr().out.split())
    assert "supervised bound" in printed
    assert "No picture was drawn." in printed
    assert 'pip install ".[figures]"' in printed
    assert not list(tmp_path.iterdir())
