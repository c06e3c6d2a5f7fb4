"""Makes ``tests.workers`` importable, in the tests' own processes too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
