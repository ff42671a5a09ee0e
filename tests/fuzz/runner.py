"""Running cases in processes of their own, which they may crash, stop or fill.

A worker writes the number of each case into shared memory before it begins, so that its death, or
its silence, is known to be due to that case. Then another worker takes its place.
"""

import contextlib
import faulthandler
import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from zlib import crc32

import numpy as np

TARGETS = ("inference", "groups", "fits", "tables", "meanings", "foreign", "models", "checkpoints",
           "commands")  # fmt: skip
#: More is refused by the system, lest a case takes the memory of the machine.
REFUSED_BYTES = 2 << 30
#: Seconds that a worker has for its first case, before which it imports and compiles.
STARTING_SECONDS = 300.0
#: Cases that are handed to a worker at a time.
BATCH = 20
FACTS = "fault.txt"
#: Where scratch files lie, if it is there.
MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Limits:
    """What a case may take: bytes above those of an idle worker, and seconds."""

    most_bytes: int = 1 << 30
    most_seconds: float = 120.0


USUAL_LIMITS = Limits()


@dataclass
class Fault:
    """What went wrong in a case, and where the files of the case are kept."""

    target: str
    number: int
    what: str
    folder: Path | None = None


@dataclass
class Totals:
    """What the cases of a target have come to."""

    target: str
    cases: int = 0
    seconds: float = 0.0
    most_bytes: int = 0
    counts: Counter = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{n:,} {what}" for what, n in sorted(self.counts.items()))
        return (
            f"{self.target}: {self.cases:,} cases in {self.seconds:.0f} s; {counts}; at most "
            f"{self.most_bytes / 2**20:.0f} MB above an idle worker; {len(self.faults)} faults"
        )


def generator(target: str, seed: int, number: int) -> np.random.Generator:
    """Return the source of all that is random in a case."""
    return np.random.default_rng([seed, crc32(target.encode()), number])


def check_case(target: str, seed: int, number: int, folder: Path) -> Counter:
    """Try one case in this process, with nothing caught, in an empty folder.

    It is the current folder meanwhile, so that files with hostile names lie there as well.
    """
    module = import_module(f"fuzz.{target}")
    folder = folder.resolve()
    with warnings.catch_warnings(), contextlib.chdir(folder):
        warnings.simplefilter("ignore")
        return Counter(module.check(generator(target, seed, number), folder))


class Worker:
    """A process that tries cases, batch by batch, in a folder of its own."""

    def __init__(self, target: str, seed: int, scratch: Path, limits: Limits) -> None:
        context = get_context("spawn")
        self.limits = limits
        self.scratch = scratch
        self.scratch.mkdir(parents=True)
        self.began = context.Array("d", [-1.0, time.monotonic()], lock=False)
        self.pipe, other = context.Pipe()
        arguments = target, seed, scratch, limits, self.began, other
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        other.close()

    @property
    def number(self) -> int:
        """The case that is being tried; -1 before the first."""
        return int(self.began[0])

    def is_late(self) -> bool:
        """Whether the case takes too long."""
        most = STARTING_SECONDS if self.number < 0 else self.limits.most_seconds
        return time.monotonic() - self.began[1] > most

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


def _work(target, seed, scratch, limits, began, pipe):
    """Try the cases of each range that comes through the pipe, and send back what happened."""
    # Only here: single cases are tried on Windows, too, which does not have it.
    import resource

    # One thread each: workers fill the cores, and memory is that of the case alone.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    # What a worker leaves that is killed goes with its folder.
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    crash = (scratch / "crash.txt").open("w")
    faulthandler.enable(crash)
    module = import_module(f"fuzz.{target}")
    prepare = getattr(module, "prepare", None)
    if prepare is not None:
        prepare()
    idle = _status("VmRSS")
    most_data = _status("VmData") + REFUSED_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most_data, most_data))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while (numbers := pipe.recv()) is not None:
        for number in numbers:
            folder = scratch / "case"
            folder.mkdir()
            _forget_peak()
            began[0], began[1] = number, time.monotonic()
            counts, fault = Counter(), None
            try:
                counts = check_case(target, seed, number, folder)
            except Exception:
                fault = traceback.format_exc()
            taken = _status("VmHWM") - idle
            if fault is None and taken > limits.most_bytes:
                fault = f"It took {taken / 2**20:.0f} MB of memory."
            pipe.send((number, counts, taken, fault))
            if fault is not None:
                # Until the files are kept.
                pipe.recv()
            shutil.rmtree(folder)


def _status(key):
    """Return a size of this process in bytes, as the system knows it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) << 10
    raise LookupError(key)


def _forget_peak():
    """Let the highest memory be that from now on."""
    Path("/proc/self/clear_refs").write_text("5")


class Run:
    """Cases of one target, on several processes, until a moment of `time.monotonic`.

    The files of faults go to the folder `kept`.
    """

    def __init__(
        self,
        target: str,
        seed: int,
        numbers: Iterator[int],
        n_workers: int = 2,
        kept: Path = Path("build/fuzz"),
        until: float = float("inf"),
        progress: Callable[[Totals], None] = lambda totals: None,
        limits: Limits = USUAL_LIMITS,
    ) -> None:
        self.target, self.seed, self.numbers = target, seed, numbers
        self.n_workers, self.kept, self.until = n_workers, kept, until
        self.progress, self.limits = progress, limits
        self.totals = Totals(target)
        self._open: dict[Worker, list[int]] = {}
        self._serial = count()

    def __call__(self) -> Totals:
        """Try the cases; what is done when Ctrl-C comes counts."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(
            prefix=f"unbag-fuzz-{os.getpid()}-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None
        ) as scratch:
            self._scratch = Path(scratch)
            try:
                for _ in range(self.n_workers):
                    self._employ([])
                while self._open:
                    self._listen()
                    self.totals.seconds = time.monotonic() - start
                    self.progress(self.totals)
            finally:
                for worker in self._open:
                    worker.stop()
        return self.totals

    def _employ(self, numbers):
        """Start a worker, with what another has left to do, or with new cases."""
        batch = numbers or self._next_batch()
        if batch:
            scratch = self._scratch / str(next(self._serial))
            worker = Worker(self.target, self.seed, scratch, self.limits)
            self._hand_over(worker, batch)

    def _next_batch(self):
        if time.monotonic() > self.until:
            return []
        return [number for _, number in zip(range(BATCH), self.numbers, strict=False)]

    def _hand_over(self, worker, batch):
        worker.pipe.send(batch)
        self._open[worker] = list(batch)

    def _listen(self):
        """Take in what workers say within a second, and what has become of them."""
        pipes = {worker.pipe: worker for worker in self._open}
        for pipe in wait(list(pipes), timeout=1.0):
            worker = pipes[pipe]
            try:
                number, counts, taken, what = pipe.recv()
            except (EOFError, ConnectionResetError):
                self._bury(worker, f"The process ended with code {_ended(worker.process)}.")
                continue
            left = self._open[worker]
            left.remove(number)
            self.totals.cases += 1
            self.totals.counts.update(counts)
            self.totals.most_bytes = max(self.totals.most_bytes, taken)
            if what is not None:
                self._keep(worker, number, what)
                pipe.send("kept")
            if not left:
                if batch := self._next_batch():
                    self._hand_over(worker, batch)
                else:
                    del self._open[worker]
                    worker.stop()
        for worker in list(self._open):
            if worker.is_late():
                self._bury(worker, f"It took more than {self.limits.most_seconds:.0f} s.")

    def _bury(self, worker, what):
        """Enter the fault of a case that its worker did not survive, and replace the worker."""
        left = self._open.pop(worker)
        number = worker.number
        if number not in left:
            worker.stop()
            raise RuntimeError(f"A worker for {self.target} could not begin: {what}")
        left.remove(number)
        self.totals.cases += 1
        worker.process.kill()
        crash = worker.scratch / "crash.txt"
        trace = crash.read_text().partition("\nExtension modules")[0]
        self._keep(worker, number, f"{trace}\n{what}")
        worker.stop()
        self._employ(left)

    def _keep(self, worker, number, what):
        """Keep the files of a case, with what happened and how to repeat it."""
        folder = self.kept / f"{self.target}-{self.seed}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        source = worker.scratch / "case"
        if source.exists():
            shutil.copytree(source, folder, symlinks=True)
        folder.mkdir(exist_ok=True)
        again = f"cd tests && python -m fuzz {self.target} --seed {self.seed} --case {number}"
        (folder / FACTS).write_text(f"{again}\n\n{what}\n", errors="backslashreplace")
        self.totals.faults.append(Fault(self.target, number, what, folder))
        line = what.strip().splitlines()[-1][:300]
        print(f"\n{self.target}, case {number}: {line}\n  {folder}", file=sys.stderr, flush=True)


def _ended(process):
    process.join(5)
    return process.exitcode
