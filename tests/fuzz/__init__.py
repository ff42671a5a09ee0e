"""Hostile input at random: every case must be answered rightly or refused in words.

A *target* is a file of this package with a function ``check(rng, folder)``: it makes one case of
what `rng` draws, tries it, and returns counts of what happened. Whatever it raises is a fault, and
so are the end of its process, a case that takes too long, and one that takes too much memory.

    cd tests && python -m fuzz tables models --cases 1000 --seed 1

A case depends on target, seed and number alone, so that any of them can be repeated alone.
"""
