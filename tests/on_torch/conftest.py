"""The devices that losses are tested on."""

from shared_fixtures import device

__all__ = ["device"]
