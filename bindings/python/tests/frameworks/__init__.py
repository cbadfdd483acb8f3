"""Every adapter with its real framework. tools/check-frameworks installs them; without them nothing here runs."""

from __future__ import annotations

import importlib.util
import unittest
from typing import Any


def load_tests(loader: Any, tests: Any, pattern: str | None) -> Any:
    """Leaves this folder out where the frameworks are not installed."""
    if importlib.util.find_spec("langchain") is None:
        return unittest.TestSuite()
    folder = __path__[0]
    top = folder.rsplit("/tests/", 1)[0]
    tests.addTests(loader.discover(folder, pattern or "test*.py", top))
    return tests
