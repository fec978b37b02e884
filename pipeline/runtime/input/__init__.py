"""Reading the input: `scan` slices it into units, `read_unit` reads one of them, wherever and whenever."""

from pipeline.runtime.input.read import read_unit
from pipeline.runtime.input.saved import scan_once
from pipeline.runtime.input.scan import scan
from pipeline.runtime.input.units import InputScan, Unit

__all__ = ["InputScan", "Unit", "read_unit", "scan", "scan_once"]
