"""Fits in the background of a review, with the answers so far; the page stays usable meanwhile."""

import logging
import threading
import warnings
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from unbag.learning import TrainingSet
from unbag.tables.roles import Roles
from unbag.tagging import BACKGROUND_NAME

from .session import Session, Stopped

logger: logging.Logger = logging.getLogger(__name__)


class Refitting:
    """Fit the model of a session again, in a thread, whenever there are enough new answers."""

    def __init__(
        self,
        session: Session,
        every: int,
        *,
        path: Path = Path("table"),
        roles: Roles | None = None,
    ) -> None:
        self.session = session
        self.every = every
        self.path = path
        self.roles = roles
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_stopped = threading.Event()
        self._n_fitted = 0
        self._done, self._most = 0, 1
        self.error: str | None = None

    @property
    def n_new(self) -> int:
        """Number of answers that the model has not seen; an undo is also an answer."""
        return self.session.n_given_answers - self._n_fitted

    def status(self) -> dict[str, Any]:
        """Describe how far a fit has got."""
        is_running = self._thread is not None and self._thread.is_alive()
        return {
            "running": is_running,
            "done": min(self._done / max(self._most, 1), 1.0) if is_running else None,
            "new": self.n_new,
            "every": self.every,
            "error": self.error,
        }

    @property
    def is_due(self) -> bool:
        """Whether there are enough new answers for a fit."""
        return bool(self.every) and self.n_new >= self.every

    def start_if_due(self) -> None:
        """Start a fit if there are enough new answers and no fit is running."""
        if self.is_due:
            self.start()

    def start(self) -> bool:
        """Start a fit; return whether that was possible."""
        with self._lock:
            if self._is_stopped.is_set():
                return False
            if (self._thread is not None and self._thread.is_alive()) or not self.n_new:
                return False
            self._done, self._most, self.error = 0, 1, None
            self._thread = threading.Thread(target=self.run, name="refit", daemon=True)
            self._thread.start()
            return True

    def stop(self, seconds: float = 5.0) -> None:
        """Stop a fit that is running, and wait for that."""
        self._is_stopped.set()
        self.wait(seconds)

    def wait(self, seconds: float | None = None) -> None:
        """Wait until no fit is running."""
        if self._thread is not None:
            self._thread.join(seconds)

    def run(self, *, survey: bool = True) -> None:
        """Fit, and let the session go on with the new model; `error` says if that failed."""
        n_answers = self.session.n_given_answers
        try:
            model = self._fitted()
            self._n_fitted = n_answers
            self.session.adopt(model, survey=survey)
        except Stopped:
            return
        except Exception as error:
            # The review goes on with the model that it has.
            self._n_fitted = n_answers
            self.error = f"The model could not be fitted again: {error}"
            logger.warning("%s", self.error)

    def _fitted(self) -> Any:
        """Fit a copy of the model to the table as people have corrected it."""
        session = self.session
        data = TrainingSet(
            session.bags, session.label_sets(), session.known(), self.roles, self.path,
            extraction=getattr(session.model, "extraction_", None),
        )  # fmt: skip
        unfitted: Any = clone(session.model)
        final = unfitted.model
        own = final.get_params(deep=False)
        if own.get("classes") is not None:
            final.set_params(classes=session.classes)
        if own.get("background") is False and BACKGROUND_NAME in data.known:
            # People have found instances of none of the classes.
            final.set_params(background="auto")
        watch = None
        if has_fit_parameter(final, "watch"):
            self._most = getattr(final, "n_steps", own.get("max_iter") or 1)
            watch = self._report
        with warnings.catch_warnings():
            # Otherwise every fit would repeat them.
            warnings.simplefilter("ignore")
            return data.check_learnable().fit(unfitted, watch=watch)

    def _report(self, reached: Any) -> None:
        if self._is_stopped.is_set():
            raise Stopped
        self._done = len(reached.history)
