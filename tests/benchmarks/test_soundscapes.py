"""Every control of make_soundscapes does what it says, and the truth is where it says."""

import csv
import wave

import numpy as np

from synthetic.soundscapes import make_soundscapes, write_soundscapes


def calls(made):
    return [box for box in made.boxes if box.label is not None]


def test_the_same_seed_makes_the_same_recordings():
    first, second = (make_soundscapes(2, duration=2.0, random_state=3) for _ in range(2))
    other = make_soundscapes(2, duration=2.0, random_state=4)
    assert all(map(np.array_equal, first.waveforms, second.waveforms))
    assert first.boxes == second.boxes
    assert first.tags == second.tags
    assert not np.array_equal(first.waveforms[0], other.waveforms[0])


def test_tags_are_the_species_of_the_calls():
    made = make_soundscapes(5, duration=4.0, random_state=0)
    for name, tags in zip(made.names, made.tags, strict=True):
        assert tags == {box.label for box in calls(made) if box.recording == name}


def test_a_box_holds_its_call():
    made = make_soundscapes(
        6, duration=4.0, species_per_recording=(1, 1), calls_per_species=(1, 1), noise=-90.0,
        clutter=0.0, loudness=(-20.0, -20.0), random_state=1,
    )  # fmt: skip
    assert len(made.boxes) == 6
    for box, waveform in zip(made.boxes, made.waveforms, strict=True):
        assert box.level > 30
        power = waveform.astype(float) ** 2
        within = power[round(box.start * 22050) : round(box.end * 22050)].sum()
        assert within > 0.97 * power.sum()
        spectrum = np.abs(np.fft.rfft(waveform)) ** 2
        frequency = np.fft.rfftfreq(len(waveform), 1 / 22050)
        in_band = spectrum[(frequency >= box.low - 20) & (frequency <= box.high + 20)].sum()
        assert in_band > 0.95 * spectrum.sum()


def test_noise_and_loudness_set_the_level():
    quiet, loud = (
        [box.level for box in calls(make_soundscapes(8, noise=noise, random_state=2))]
        for noise in (-50.0, -30.0)
    )
    assert np.median(quiet) > np.median(loud) + 10
    faint = make_soundscapes(8, loudness=(-60.0, -60.0), random_state=2)
    assert np.median([box.level for box in calls(faint)]) < np.median(quiet) - 10


def test_overlap_sets_how_many_calls_sound_at_once():
    def n_overlapping(overlap):
        made = make_soundscapes(10, overlap=overlap, clutter=0.0, random_state=5)
        boxes = calls(made)
        return sum(
            one.recording == other.recording and one.start < other.start < one.end
            for one in boxes
            for other in boxes
        )

    assert n_overlapping(0.0) < 0.2 * n_overlapping(0.9)


def test_clutter_has_no_label():
    assert all(box.label for box in make_soundscapes(4, clutter=0.0, random_state=0).boxes)
    made = make_soundscapes(4, clutter=6.0, random_state=0)
    assert sum(box.label is None for box in made.boxes) > 8


def test_recordings_are_written_with_tags_and_truth(tmp_path):
    made = make_soundscapes(2, duration=2.0, species_per_recording=(0, 1), random_state=4)
    paths = write_soundscapes(made, tmp_path / "sounds")
    with wave.open(str(paths[0])) as file:
        assert (file.getframerate(), file.getnframes(), file.getsampwidth()) == (22050, 44100, 2)
        samples = np.frombuffer(file.readframes(44100), "<i2") / 32767
    np.testing.assert_allclose(samples, made.waveforms[0], atol=1e-4)
    with (tmp_path / "sounds/tags.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [path.name for path in paths]
    assert [row["tags"] for row in rows] == ["|".join(sorted(t)) or "(none)" for t in made.tags]
    with (tmp_path / "sounds/truth.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(made.boxes)
