"""Clusters: connecting a client, checking its workers, and tasks that clean up after themselves."""

import asyncio
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from functools import reduce
from pkgutil import resolve_name
from time import monotonic
from typing import Any, TypeAlias
from weakref import WeakSet

import distributed
from distributed import CancelledError, Client, Future

from unbag._messages import warn_caller
from unbag._threads import core_count
from unbag._version import __version__

#: A client, the address of a scheduler, or None for the current client or a local cluster.
ClientLike: TypeAlias = "Client | str | None"
#: Seconds to wait for a scheduler.
SCHEDULER_TIMEOUT = 10
#: Seconds to wait for a worker if there is none: clusters that scale on demand start with none,
#: and a nanny replaces a lost one in seconds. A busy scheduler notices a loss late, and within a
#: minute all shall be over.
WORKER_TIMEOUT = 40
#: Seconds between checks for workers while waiting for results.
CHECK_INTERVAL = 1.0
#: Number of results that one task adds.
FAN_IN = 8


class ClusterError(RuntimeError):
    """A cluster cannot be reached or cannot be used; the message says why."""


class LostWorkersWarning(UserWarning):
    """A cluster has lost all its workers, and the fit or annotation waits for new ones."""


@contextmanager
def connected(client: ClientLike) -> Iterator[Client]:
    """Connect to a client whose workers have this version of the package.

    A client is used as it is. A client for an address is closed when the context ends. None means
    the current client; if there is none, a cluster of threads in this process, which ends with the
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
    """Start a cluster in this process, with a thread per core, and return its client."""
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
    """A client that is closed immediately if it cannot connect.

    Otherwise the garbage collector would close it, possibly while Dask holds the lock that closing
    waits for.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        try:
            super().__init__(*args, **options)
        except BaseException:
            self.close()
            raise


def opened(address: str) -> Client:
    """Connect to a scheduler; raise a ClusterError if it does not answer."""
    try:
        return ConnectedClient(address, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No scheduler answered at {address} within {SCHEDULER_TIMEOUT} seconds: check the "
            f"address, and that the scheduler is running. ({error})"
        ) from error


def check_workers(client: Client) -> None:
    """Raise an error unless there are workers, all with this version of the package."""
    if not client.nthreads():
        # A task, instead of just waiting, makes clusters start workers on demand.
        probe = client.submit(resolve_name, "sys:version", pure=False)
        try:
            probe.result(timeout=WORKER_TIMEOUT)
        except TimeoutError as error:
            raise ClusterError(
                f"The cluster has no workers, and none started within {WORKER_TIMEOUT} seconds: "
                "start some, and wait for them (client.wait_for_workers)."
            ) from error
        finally:
            probe.cancel()
    # A function of the standard library, because workers may not have the package.
    found: Any = client.run(resolve_name, "unbag._version:__version__", on_error="return")
    for worker, version in found.items():
        if isinstance(version, OSError):
            # The worker was lost; others do its work.
            continue
        if isinstance(version, BaseException):
            raise ClusterError(
                f"Worker {worker} does not have unbag ({version}): install version {__version__} "
                "there, as on this machine."
            )
        if version != __version__:
            raise ClusterError(
                f"Worker {worker} has unbag {version}, but this machine has {__version__}: install "
                "the same version everywhere."
            )


class Tasks:
    """The tasks of a fit or annotation; when the context ends, all are released."""

    def __init__(self, client: Client) -> None:
        self.client = client
        # Weak references: tasks that are already released need not be cancelled.
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
        """Return the number of threads of all workers; 1 if all workers are lost at the moment."""
        workers: Any = self.client.nthreads()
        return max(sum(workers.values()), 1)

    def submit(self, function: Callable[..., Any], *given: Any, **options: Any) -> Future:
        """Call a function on a worker."""
        with warnings.catch_warnings():
            # Bags of the client are sent with their task, so that another worker can repeat it.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            future = self.client.submit(function, *given, pure=False, **options)
        self._own.add(future)
        return future

    def map(self, function: Callable[..., Any], *given: Sequence[Any], **same: Any) -> list[Future]:
        """Call a function on workers for each of several arguments, with shared options."""
        if not given[0]:
            return []
        futures = self.client.map(function, *given, pure=False, **same)
        self._own.update(futures)
        return futures

    def compute(self, delayed: Sequence[Any]) -> list[Future]:
        """Compute delayed values on workers; they are not cancelled, as others may use them too."""
        futures: Any = self.client.compute(list(delayed))
        self._shared.update(futures)
        return futures

    def total(self, answers: list[Future]) -> Any:
        """Add up results in a tree, on the workers, and return the sum."""
        while len(answers) > 1:
            starts = range(0, len(answers), FAN_IN)
            answers = [self.submit(add_up, answers[start : start + FAN_IN]) for start in starts]
        return self.results(answers)[0]

    def results(self, futures: list[Future]) -> list[Any]:
        """Wait for tasks and return their results; raise the error of a task that failed.

        If all workers are lost, wait for new ones, which repeat the lost tasks.
        """
        gathered: Any = self.client.gather(futures, asynchronous=True)
        loop: Any = self.client.loop
        waiting = asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop)
        lost_at = None
        try:
            while not wait([waiting], timeout=CHECK_INTERVAL).done:
                lost_at = self._check_for_workers(lost_at)
            return waiting.result()
        except CancelledError as error:
            raise ClusterError(
                "The tasks were cancelled, or the scheduler was lost, or data that only a lost "
                "worker had, and their results with them: start again with a connected client."
            ) from error
        except distributed.KilledWorker as error:
            raise ClusterError(
                f"Workers died repeatedly at the same task, most likely because they ran out of "
                f"memory: give them more, or split the data into more partitions. ({error})"
            ) from error
        finally:
            waiting.cancel()

    def _check_for_workers(self, lost_at: float | None) -> float | None:
        """Return since when all workers are lost; None if there are some.

        Raise an error if that is longer than `WORKER_TIMEOUT`.
        """
        try:
            workers = self.client.nthreads()
        except OSError:
            # The scheduler is lost, and the client cancels the tasks.
            return lost_at
        if workers:
            if lost_at is not None:
                check_workers(self.client)
            return None
        if lost_at is None:
            warn_caller(
                f"The cluster has lost all its workers: waiting up to {WORKER_TIMEOUT:g} "
                "seconds for new ones, which repeat what was lost.",
                LostWorkersWarning,
            )
            return monotonic()
        if monotonic() - lost_at > WORKER_TIMEOUT:
            raise ClusterError(
                "The cluster has lost all its workers, and no new one came within "
                f"{WORKER_TIMEOUT:g} seconds: look in their logs why they ended (often they "
                "run out of memory), start workers, and begin again."
            )
        return lost_at


def add_up(answers: Sequence[Any]) -> Any:
    """Add answers in order."""
    return reduce(operator.add, answers)
