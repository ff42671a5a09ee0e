"""Messages are one line of bounded length, whatever the names in them."""

import time
import warnings

import pytest

import unbag
from unbag._files import DataError
from unbag._messages import (
    LONGEST_MESSAGE,
    LONGEST_VALUE,
    escaped,
    listed,
    one_line,
    suggestion,
    warn_caller,
)
from unbag.models import ModelFileError

HOSTILE = "wren\n\x1b[31mred\x07\r\u202e\ud800\x85"


@pytest.mark.parametrize("write", [one_line, escaped, lambda text: listed([text, text])])
def test_names_do_nothing_to_a_terminal(write):
    text = write(HOSTILE)
    assert text.isprintable()
    assert "\\x1b[31mred" in text
    text.encode()


@pytest.mark.parametrize("name", ["Zaunkönig", "雀\u3000二", "👩\u200d🚀", "a\u00a0b"])
def test_names_of_people_stay_as_they_are(name):
    assert one_line(name) == listed([name]) == escaped(name) == name


@pytest.mark.parametrize("kind", [DataError, ModelFileError])
def test_errors_are_one_line_of_bounded_length(kind):
    text = str(kind(f"t.csv: {HOSTILE}{'x' * 10**6}: correct it."))
    assert text.isprintable()
    assert len(text) == LONGEST_MESSAGE
    assert text.startswith("t.csv: wren")
    assert text.endswith("x: correct it.")


def test_warnings_are_one_line_of_bounded_length():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_caller(HOSTILE * 10_000)
    text = str(caught[0].message)
    assert text.isprintable()
    assert len(text) == LONGEST_MESSAGE


def test_lists_of_long_names_are_short():
    assert len(listed(["w" * 10**6] * 1000)) < 13 * (LONGEST_VALUE + 2) + 20


def test_looking_for_a_similar_name_takes_no_time():
    start = time.process_time()
    assert suggestion("bird", [f"column {place}" for place in range(100_000)]) == ""
    assert suggestion("w" * 10**6, ["v" * 10**6, "W" * 10**6]).startswith(" Did you mean 'WWW")
    assert len(suggestion("w" * 10**6, ["W" * 10**6])) < 100
    assert time.process_time() - start < 2.0


def test_half_a_character_is_no_class():
    bags = [[[0.0], [9.0]], [[8.0]]]
    with pytest.raises(ValueError, match=r"The class 'a\\ud800' holds half a character"):
        unbag.ORLogisticRegression().fit(bags, [{"a\ud800", "b"}, {"b"}])
