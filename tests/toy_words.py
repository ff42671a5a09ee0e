"""Words in a table: what an ecologist's syllables look like, only shorter."""

from unbag.datasets import load_letter_frost

#: Which column is what, as options of a command.
ROLES = ("--bag", "word", "--labels", "tags", "--carry", "letter,note")


def word_lines(n_bags=60, seed=0, truth=True):
    """Lines of a CSV table: letters in words, with an id and a note that must come through."""
    data = load_letter_frost(random_state=seed)
    names = data.class_names
    lines = ["word,tags," + ("letter," if truth else "") + "note," + ",".join(data.feature_names)]
    for b in range(n_bags):
        tags = "|".join(names[data.y[b] == 1])
        for i in range(data.bags.offsets[b], data.bags.offsets[b + 1]):
            shown = f"{names[data.instance_labels[i]]}," if truth else ""
            features = ",".join(f"{value:.0f}" for value in data.bags.X[i])
            lines.append(f'w{b:03},{tags},{shown}"0{i:03}, ""raw""",{features}')
    return lines
