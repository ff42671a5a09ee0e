"""How thoroughly an experiment is made, and on which data."""

from dataclasses import dataclass

from unbag import datasets

#: The paper's data sets, in its order.
PAPER_DATA = (
    "hja", "hja-union", "msrcv2", "letter-carroll", "letter-frost", "voc12", "50salads",
)  # fmt: skip
#: Drawn at random from the letters of the alphabet: one draw says little.
DRAWN = ("letter-carroll", "letter-frost")
LEVELS = ("quick", "standard", "full")


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    Parameters
    ----------
    data : tuple of str
        Names of data sets.
    level : {"quick", "standard", "full"}
        "quick" is for a first look: few folds and few settings. "standard" has the paper's
        folds and iterations, and a thinned grid for those rivals whose grid is large. "full" has
        the paper's grids too.
    seed : int
        Of folds, draws of letters, and methods.
    """

    data: tuple
    level: str = "standard"
    seed: int = 0

    @property
    def n_folds(self):
        """Number of folds of a cross-validation."""
        return 3 if self.level == "quick" else 10

    def draws(self, name):
        """Tell which draws of a data set to work on: several, where it is drawn at random."""
        return range(self.seed, self.seed + (5 if name in DRAWN and self.level != "quick" else 1))

    def describe(self, *, folds=True):
        """Say it in words, for the foot of a table."""
        drawn = [name for name in self.data if name in DRAWN]
        letters = ""
        if drawn:
            n_draws = len(self.draws(drawn[0]))
            letters = f"; letters: {n_draws} draw{'s' if n_draws > 1 else ''}"
        times = f"{self.n_folds} folds; " if folds else ""
        return f"{times}{self.level} grids; seed {self.seed}{letters}"


def available(names, console=None):
    """Leave out the data sets that are not on this machine, and say so in one line each."""
    found = []
    for name in names:
        if datasets.is_available(name):
            found.append(name)
        elif console is not None:
            console.print(f"[yellow]{name} is not on this machine: left out.[/yellow]")
    return tuple(found)
