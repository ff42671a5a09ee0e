"""Segments of recordings in a report: what is drawn, and what can be heard."""

import base64
import io
import re

import numpy as np
import pytest

from synthetic.soundscapes import write_wav
from unbag._png import png
from unbag.extract.sounds import Spectrogram
from unbag.report.clips import Place, clip_of, places_of, spectrogram_pixels
from unbag.report.media import NO_ROOM, Media

soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed")

RATE = 22050


@pytest.fixture
def recording(tmp_path):
    """Five seconds of noise, with a beep of 2 kHz from 2.0 to 2.5 s, and one of 6 kHz over it."""
    time = np.arange(5 * RATE) / RATE
    sound = 0.001 * np.random.default_rng(0).standard_normal(len(time))
    beep = (time >= 2) & (time < 2.5)
    sound += 0.01 * beep * (np.sin(2 * np.pi * 2000 * time) + np.sin(2 * np.pi * 6000 * time))
    write_wav(tmp_path / "beep.wav", sound, RATE)
    return tmp_path / "beep.wav"


def samples(content):
    found, rate = soundfile.read(io.BytesIO(content))
    assert (found.ndim, rate) == (1, RATE)
    return found


def cut(path, *place):
    with path.open("rb") as file:
        return clip_of(file, Place(*place))


def test_a_clip_has_the_segment_and_a_second_around(recording):
    clip = cut(recording, 2.0, 2.5, 1800, 2200)
    around = samples(clip.around)
    assert len(around) == round(2.5 * RATE)
    assert (clip.begin, clip.end) == (1.0, 1.5)
    loud = np.abs(around).reshape(-1, RATE // 10).mean(axis=1)
    assert loud[10:15].min() > 3 * loud[[*range(9), *range(16, 25)]].max()
    # Faint calls are amplified.
    assert np.abs(around).max() == pytest.approx(0.7, abs=0.1)


def test_the_band_alone_lacks_what_is_above(recording):
    band = samples(cut(recording, 2.0, 2.5, 1800, 2200).band)
    assert len(band) == RATE // 2 or len(band) == RATE // 2 + 1
    power = np.abs(np.fft.rfft(band)) ** 2
    frequency = np.fft.rfftfreq(len(band), 1 / RATE)
    assert power[(frequency > 1800) & (frequency < 2200)].sum() > 0.999 * power.sum()


def test_the_drawing_has_the_box_where_the_segment_is(recording):
    drawing = cut(recording, 2.0, 2.5, 1800, 2200).drawing
    x, y, width, height = (
        float(re.search(rf'class="box"[^>]*? {name}="([\d.]+)"', drawing)[1])
        for name in ("x", "y", "width", "height")
    )
    # The picture has 270 x 110 units, of 2.5 s and 11,025 Hz.
    assert (x - 26) / 270 * 2.5 == pytest.approx(1.0, abs=0.01)
    assert width / 270 * 2.5 == pytest.approx(0.5, abs=0.01)
    assert 11025 * (1 - (y - 4) / 110) == pytest.approx(2200, abs=20)
    assert height / 110 * 11025 == pytest.approx(400, abs=20)
    assert "2.00" in drawing
    assert "2.50" in drawing
    picture = re.search(r'href="data:image/png;base64,([^"]+)"', drawing)[1]
    assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_loud_is_black_and_noise_is_white(recording):
    rng = np.random.default_rng(1)
    time = np.arange(2 * RATE) / RATE
    sound = 0.001 * rng.standard_normal(len(time))
    sound += 0.5 * np.sin(2 * np.pi * 5500 * time) * (time > 1.5)
    pixels = spectrogram_pixels(sound.astype(np.float32), RATE)
    middle = len(pixels) // 2
    late = round(1.7 * RATE / Spectrogram(RATE).hop)
    assert pixels[middle - 4 : middle + 4, late].min() == 0
    assert pixels[:, : late // 2].mean() > 220


def test_a_picture_can_be_read_by_others(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    read = image.imread(io.BytesIO(png(pixels)))
    np.testing.assert_allclose(read * 255, pixels, atol=1e-3)


@pytest.mark.parametrize("place", [(3.0, 2.0), (9.0, 9.5), (-1.0, 1.0)])
def test_what_is_not_in_the_recording_is_refused(recording, place):
    with pytest.raises(ValueError, match=r"it has no place|its recording is shorter"):
        cut(recording, *place)


def test_media_are_clips_where_places_are_known(recording):
    places = places_of([2.0, 9.0], [2.5, 9.5], [[1800, 0], [2200, 100]])
    media = Media(["beep.wav", "beep.wav"], recording.parent, places)
    clip, whole = media.of_instance(0), media.of_instance(1)
    assert (clip.kind, whole.kind) == ("clip", "audio")
    assert media.of_instance(0) is clip
    assert len(media.sources) == 3
    outside = Media(["../beep.wav"], recording.parent / "none", places)
    assert outside.of_instance(0).kind == "gap"
    media = Media(["beep.wav"], recording.parent, places)
    media.room = 1000
    assert media.of_instance(0).reason == NO_ROOM
