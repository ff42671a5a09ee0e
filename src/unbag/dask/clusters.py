"""Clusters: a client to work with, workers that can do the work, and tasks that leave nothing."""

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from pkgutil import resolve_name
from time import monotonic
from typing import Any, TypeAlias
from weakref import WeakSet

import distributed
from distributed import CancelledError, Client, Future

from unbag._threads import core_count
from unbag._version import __version__
from unbag._warnings import warn_caller

#: A client, the address of a scheduler, or None for the current client or a cluster of one's own.
ClientLike: TypeAlias = "Client | str | None"
#: Seconds within which a scheduler has to answer.
SCHEDULER_PATIENCE = 10
#: Seconds within which there has to be a worker; clusters that grow on demand begin with none.
WORKER_PATIENCE = 60
#: Seconds to wait for a worker when all are lost. A nanny starts one in seconds, a queue of jobs
#: in minutes.
LOST_PATIENCE = 300
#: Seconds between two looks at whether there are workers, while answers are awaited.
LOOK_EVERY = 1.0
#: Answers that are added up by one task.
FAN_IN = 8


class ClusterError(RuntimeError):
    """A cluster cannot be reached, or cannot do what it is asked to; the message says why."""


class LostWorkersWarning(UserWarning):
    """A cluster has lost all its workers, and a fit or an annotation waits for others."""


@contextmanager
def connected(client: ClientLike) -> Iterator[Client]:
    """Give a client whose workers have this version of the package.

    A client is used as it is. One for an address is closed when the context ends. None is the
    current client; if there is none, a cluster of threads in this process, which ends with the
    context.
    """
    if client is None:
        try:
            client = Client.current()
        except ValueError:
            with own_cluster() as own:
                yield own
            return
    if isinstance(client, str):
        with opened(client) as own:
            check_workers(own)
            yield own
        return
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(
            "client must be a distributed.Client that is not asynchronous, the address of a "
            f"scheduler, or None; got {client!r}."
        )
    if client.status != "running":
        raise ClusterError(
            f"The client is {client.status}, not running: connect to the scheduler again."
        )
    check_workers(client)
    yield client


@contextmanager
def own_cluster() -> Iterator[Client]:
    """Give the client of a cluster in this process, a thread for each core."""
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=core_count(),
            processes=False,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


class ConnectedClient(Client):
    """A client that is closed at once where it cannot connect.

    Else Python would close it with other garbage, maybe at a moment when Dask holds the lock that
    closing waits for.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        try:
            super().__init__(*args, **options)
        except BaseException:
            self.close()
            raise


def opened(address: str) -> Client:
    """Connect to a scheduler; raise the error that says why not."""
    try:
        return ConnectedClient(address, timeout=SCHEDULER_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No scheduler answers at {address} within {SCHEDULER_PATIENCE} seconds: check the "
            f"address, and that the scheduler runs. ({error})"
        ) from error


def check_workers(client: Client) -> None:
    """Raise an error unless there are workers, all with this version of the package."""
    if not client.scheduler_info(n_workers=-1)["workers"]:
        # A task, rather than mere waiting, lets clusters grow that do so on demand.
        probe = client.submit(resolve_name, "sys:version", pure=False)
        try:
            probe.result(timeout=WORKER_PATIENCE)
        except TimeoutError as error:
            raise ClusterError(
                f"The cluster has no workers, and none came within {WORKER_PATIENCE} seconds: "
                "start some, and wait for them (client.wait_for_workers)."
            ) from error
        finally:
            probe.cancel()
    # By a function that Python brings: workers without the package have none of ours.
    found: Any = client.run(resolve_name, "unbag._version:__version__", on_error="return")
    for worker, version in found.items():
        if isinstance(version, OSError):
            # It was lost meanwhile, and others do its work.
            continue
        if isinstance(version, BaseException):
            raise ClusterError(
                f"Worker {worker} has no unbag ({version}), and this machine has {__version__}: "
                "install the same version there."
            )
        if version != __version__:
            raise ClusterError(
                f"Worker {worker} has unbag {version}, and this machine has {__version__}: install "
                "the same version on all of them."
            )


class Tasks:
    """What one fit or annotation has on a cluster; when its context ends, nothing is left there."""

    def __init__(self, client: Client) -> None:
        self.client = client
        # Those that are released by themselves need not be cancelled.
        self._own: WeakSet[Future] = WeakSet()
        self._shared: WeakSet[Future] = WeakSet()

    def __enter__(self) -> "Tasks":
        return self

    def __exit__(self, *_: object) -> None:
        if self.client.status == "running":
            self.client.cancel(list(self._own))
        for future in list(self._shared):
            future.release()

    def n_threads(self) -> int:
        """Return how many threads the workers have; one where all are lost at the moment."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return max(sum(worker["nthreads"] for worker in workers.values()), 1)

    def submit(self, function: Callable[..., Any], *given: Any, **options: Any) -> Future:
        """Let a worker call a function; what it is given is kept until the task is forgotten."""
        with warnings.catch_warnings():
            # Bags that are held here go with their task, so that it can be done again elsewhere.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            future = self.client.submit(function, *given, pure=False, **options)
        self._own.add(future)
        return future

    def map(self, function: Callable[..., Any], *given: Sequence[Any], **same: Any) -> list[Future]:
        """Let workers call a function for each of what is given, and with what is the same."""
        if not given[0]:
            return []
        futures = self.client.map(function, *given, pure=False, **same)
        self._own.update(futures)
        return futures

    def compute(self, delayed: Sequence[Any]) -> list[Future]:
        """Let workers compute what is delayed; what they have already may be somebody else's."""
        futures: Any = self.client.compute(list(delayed))
        self._shared.update(futures)
        return futures

    def total(self, answers: list[Future]) -> Any:
        """Add up answers in a tree, on the workers, and return the sum."""
        while len(answers) > 1:
            starts = range(0, len(answers), FAN_IN)
            answers = [self.submit(add_up, answers[start : start + FAN_IN]) for start in starts]
        return self.results(answers)[0]

    def results(self, futures: list[Future]) -> list[Any]:
        """Wait for tasks and return what they give; an error of one of them is raised.

        While there is no worker, others are waited for: they do all that was lost again.
        """
        gathered: Any = self.client.gather(futures, asynchronous=True)
        loop: Any = self.client.loop
        waiting = asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop)
        lost_at = None
        try:
            while not wait([waiting], timeout=LOOK_EVERY).done:
                lost_at = self._look_for_workers(lost_at)
            return waiting.result()
        except CancelledError as error:
            raise ClusterError(
                "The tasks were cancelled, or the scheduler that knew them is gone, or data that "
                "only a lost worker had: nothing is left of the work. Begin again, with a client "
                "that is connected."
            ) from error
        except distributed.KilledWorker as error:
            raise ClusterError(
                f"Workers died over and over at the same task, most likely of too little memory: "
                f"give them more of it, or the data more partitions. ({error})"
            ) from error
        finally:
            waiting.cancel()

    def _look_for_workers(self, lost_at: float | None) -> float | None:
        """Return since when there is no worker; None if there is one.

        Raise an error where that is too long ago.
        """
        try:
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
        except OSError:
            # The scheduler is gone, and that cancels the tasks.
            return lost_at
        if workers:
            if lost_at is not None:
                check_workers(self.client)
            return None
        if lost_at is None:
            warn_caller(
                f"The cluster has lost all its workers: waiting up to {LOST_PATIENCE:g} seconds "
                "for others, which do again what was lost.",
                LostWorkersWarning,
            )
            return monotonic()
        if monotonic() - lost_at > LOST_PATIENCE:
            raise ClusterError(
                f"The cluster has lost all its workers, and none came within {LOST_PATIENCE:g} "
                "seconds: look in their logs why they ended (often it is memory), start some, and "
                "begin again."
            )
        return lost_at


def add_up(answers: Sequence[Any]) -> Any:
    """Add answers of parts in their order; labels that were relaxed are put together."""
    first, *rest = answers
    for answer in rest:
        first = first | answer if isinstance(first, dict) else first + answer
    return first
