"""What the tests of unbag have as well."""

from shared_fixtures import device, rng, run

__all__ = ["device", "rng", "run"]
