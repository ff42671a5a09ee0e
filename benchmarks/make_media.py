"""Write synthetic recordings, pictures or signals with their tags, to try `unbag extract` with.

    python benchmarks/make_media.py recordings FOLDER
    python benchmarks/make_media.py pictures FOLDER
    python benchmarks/make_media.py signals FOLDER [--together]

FOLDER gets the files, ``tags.csv``, and ``truth.csv`` with the place of everything that was put in.
Signals are files in FOLDER/days, or with --together one table, FOLDER/days.parquet.
"""

import argparse
from pathlib import Path


def main():
    """Write media of one kind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("recordings", "pictures", "signals"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--together", action="store_true", help="signals: all in one table")
    given = parser.parse_args()
    # Each kind needs packages that the others do not.
    if given.kind == "recordings":
        from synthetic.soundscapes import make_soundscapes, write_soundscapes

        made = make_soundscapes(
            given.number, n_species=6, species_per_recording=(1, 3), random_state=given.seed
        )
        write_soundscapes(made, given.folder)
    elif given.kind == "pictures":
        from synthetic.pictures import make_pictures, write_pictures

        made = make_pictures(
            given.number, n_classes=6, classes_per_picture=(1, 3), random_state=given.seed
        )
        write_pictures(made, given.folder)
    else:
        from synthetic.signals import make_signals, write_signals

        made = make_signals(
            given.number, n_activities=6, activities_per_recording=(1, 3), random_state=given.seed
        )
        suffix = ".parquet" if given.together else ".csv"
        write_signals(made, given.folder, suffix=suffix, together=given.together)


if __name__ == "__main__":
    main()
