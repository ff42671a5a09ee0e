"""50 Salads: what accelerometers on kitchen tools feel while people make salad."""

from datetime import datetime
from pathlib import Path

import numpy as np

from unbag.datasets.dataset import Dataset, arrays_of, numbered_lines, unexpected_line
from unbag.datasets.home import Arrays, DataHome, Source, fetch

# Annotations such as "cut_tomato_core": verb, object, and phase of the activity.
VERBS = ("add", "cut", "mix", "peel", "place", "serve")
# These span many activities, and begin like one of them.
STAGES = ("cut_and_mix_ingredients", "prepare_dressing", "serve_salad")
WINDOW_SECONDS = 10
WINDOWS_PER_BAG = 16
STATISTICS = (
    "mean x", "mean y", "mean z", "spread x", "spread y", "spread z", "spread", "presence",
)  # fmt: skip
# Of every accelerometer in one second, as published.
SAMPLES_PER_SECOND = 50

SALADS = Source(
    name="50salads",
    file="50salads.npz",
    folder="50salads",
    published=("*-accelerometer.csv", "*-synchronization.txt", "*-activityAnnotation.txt"),
    page="https://cvip.computing.dundee.ac.uk/datasets/foodpreparation/50salads/",
    description="""\
50 Salads: activities in a kitchen, felt by accelerometers on seven tools.

25 people prepared two salads each. An instance is a window of 10 seconds, a bag 16 windows on end,
and the 6 classes are the verbs of the annotated activities: add, cut, mix, peel, place, serve. Each
bag has the labels of its instances. How the paper cut its 124 bags and 2,020 instances, and what
its 57 features are, is not published; bags, instances and the 8 features per tool are our own, so
figures differ from the published ones.

Source: https://cvip.computing.dundee.ac.uk/datasets/foodpreparation/50salads/
Licence: Creative Commons Attribution-NonCommercial-ShareAlike 4.0 International (CC BY-NC-SA 4.0)
Cite: S. Stein and S. J. McKenna (2013), "Combining embedded accelerometers with computer vision for
recognizing food preparation activities", UbiComp.
""",
)


def fetch_50salads(
    data_home: DataHome = None, download_if_missing: bool = True, unverified: bool = False
) -> Dataset:
    """Read what accelerometers on kitchen tools felt, and what the cook was doing.

    Parameters
    ----------
    data_home : str or path, optional
        Folder that holds ``50salads.npz``, or a folder ``50salads`` with the published files; by
        default the one that the environment variable ``UNBAG_DATA`` names, and then the user's
        cache.
    download_if_missing : bool, default=True
        Without effect, and here because every ``fetch_`` function has it: its authors hand the
        files out on their own page.
    unverified : bool, default=False
        Without effect, as `download_if_missing`.

    Returns
    -------
    Dataset

    Notes
    -----
    Three published files belong to a recording such as ``01-1``.
    ``01-1-activityAnnotation.txt`` has lines ``start end activity``, in microseconds of the video.
    ``01-1-accelerometer.csv`` has, among commas, any first value, the time
    (``2012-01-31 10:15:30.123``), the number of the device, a running number, and the acceleration
    along x, y and z. ``01-1-synchronization.txt`` has twice a time of the video and how far it is
    ahead of the accelerometers' clock, in milliseconds, and then lines ``device,tool``.

    Windows run from the first annotated activity to the last. The label of a window is the verb
    that fills most of it, and -1 where nothing is annotated. For every tool its features are the
    mean and the standard deviation of the acceleration along x, y and z, the standard deviation of
    its strength, and the share of samples that arrived; without samples, all are zero.
    """
    return fetch(SALADS, convert_salads, data_home, download_if_missing, unverified)


def convert_salads(folder: Path) -> Arrays:
    """Turn the published files into arrays; see `fetch_50salads` for how."""
    recordings = {}
    for path in sorted(folder.rglob("*-activityAnnotation.txt")):
        name = path.name.removesuffix("-activityAnnotation.txt")
        others = (f"{name}-synchronization.txt", f"{name}-accelerometer.csv")
        paths = [next(folder.rglob(other), None) for other in others]
        # Two of the published recordings lack one of the files, and cannot be used.
        if name not in recordings and all(paths) and (activities := _activities(path)):
            recordings[name] = (activities, *_synchronization(paths[0]), paths[1])
    if not recordings:
        raise ValueError(
            f"{folder} has no recording with annotated activities, synchronization and "
            "accelerometer data: put the three files of each recording there."
        )
    tools = sorted({tool for _, _, devices, _ in recordings.values() for tool in devices.values()})
    X, labels, bag_of_instance, ids = [], [], [], []
    step = 1000.0 * WINDOW_SECONDS
    for name, (activities, offsets, devices, path) in recordings.items():
        samples = _samples(path, devices, tools)
        first = min(start for start, _, _ in activities)
        last = max(stop for _, stop, _ in activities)
        for window, start in enumerate(np.arange(first, last, step)):
            clock = [time - np.interp(time, *offsets) for time in (start, start + step)]
            X.append(np.concatenate([window_features(samples[tool], *clock) for tool in tools]))
            labels.append(_label(activities, start, start + step))
            if window % WINDOWS_PER_BAG == 0:
                ids.append(f"{name} {window // WINDOWS_PER_BAG}")
            bag_of_instance.append(len(ids) - 1)
    names = np.array([f"{tool} {part}" for tool in tools for part in STATISTICS])
    return arrays_of(X, labels, bag_of_instance, VERBS, feature_names=names, ids=np.array(ids))


def window_features(samples: np.ndarray, start: float, stop: float) -> np.ndarray:
    """Describe what one accelerometer felt in a window of time.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, 4)
        Time in milliseconds, and acceleration along x, y and z, sorted by time.
    start, stop : float
        The window, in milliseconds.

    Returns
    -------
    ndarray of shape (8,)
        Means, standard deviations, standard deviation of the strength, and share of samples that
        arrived.

    Examples
    --------
    >>> samples = np.array([[0.0, 1, 0, 0], [20, 3, 0, 0], [90, 9, 9, 9]])
    >>> window_features(samples, 0, 40).tolist()
    [2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    """
    begin, end = np.searchsorted(samples[:, 0], [start, stop])
    values = samples[begin:end, 1:]
    if not len(values):
        return np.zeros(len(STATISTICS))
    strength = np.linalg.norm(values, axis=1).std()
    presence = min(1.0, len(values) / ((stop - start) / 1000 * SAMPLES_PER_SECOND))
    return np.concatenate([values.mean(axis=0), values.std(axis=0), [strength, presence]])


def _label(activities, start, stop):
    """Column of the verb that fills most of the window; -1 if none is in it."""
    filled = np.zeros(len(VERBS))
    for first, last, verb in activities:
        filled[verb] += max(0.0, min(last, stop) - max(first, start))
    return int(filled.argmax()) if filled.any() else -1


def _activities(path):
    """Start and end in milliseconds, and column of the verb, of every annotated activity."""
    activities = []
    for number, line in numbered_lines(path):
        try:
            start, stop, activity = line.split()
            start, stop = float(start) / 1000, float(stop) / 1000
        except ValueError:
            raise unexpected_line(path, number, line, "start, end and activity") from None
        if activity in STAGES:
            continue
        verb = activity.split("_")[0]
        if verb not in VERBS or not start <= stop:
            raise unexpected_line(path, number, line, f"an interval of {', '.join(VERBS)}")
        activities.append((start, stop, VERBS.index(verb)))
    return activities


def _synchronization(path):
    """Read two times of the video, how far the clocks are apart then, and the tools of devices."""
    pairs = []
    for number, line in numbered_lines(path):
        try:
            left, right = (part.strip() for part in line.split(","))
            pairs.append((float(left), float(right)) if len(pairs) < 2 else (int(left), right))
        except ValueError:
            raise unexpected_line(path, number, line, "two values and a comma") from None
    if len(pairs) < 3:
        raise ValueError(f"{path} ends before any device: it needs two times, and then devices.")
    return np.transpose(sorted(pairs[:2])), dict(pairs[2:])


def _samples(path, devices, tools):
    """Read the samples of each tool, of shape (n_samples, 4): milliseconds of the day; x, y, z."""
    samples = {tool: [] for tool in tools}
    for number, line in numbered_lines(path):
        try:
            _, time, device, _, *acceleration = line.split(",")
            x, y, z = map(float, acceleration)
            tool = devices.get(int(device))
            moment = datetime.fromisoformat(time.strip())
        except ValueError:
            if number == 1:
                continue  # Headings.
            raise unexpected_line(path, number, line, "time, device and acceleration") from None
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        if tool is not None:
            samples[tool].append((1000 * (moment - midnight).total_seconds(), x, y, z))
    return {tool: np.array(sorted(rows)).reshape(-1, 4) for tool, rows in samples.items()}
