"""Learning is all or nothing: what fails leaves a model as it was."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Make a method that learns restore the attributes of its estimator when it fails.

    A model half of whose attributes are new would go on answering. Those of the steps of a
    pipeline are restored too, since it fits them one after the other.
    """

    @wraps(method)
    def learn(self: Any, *arguments: Any, **options: Any) -> Any:
        steps = [step for _, step in getattr(self, "steps", ()) if hasattr(step, "__dict__")]
        before = [(part, dict(vars(part))) for part in (self, *steps)]
        try:
            return method(self, *arguments, **options)
        except BaseException:
            for part, attributes in before:
                vars(part).clear()
                vars(part).update(attributes)
            raise

    return cast(Method, learn)
