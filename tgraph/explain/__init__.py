"""Answer explanation from the record alone, divided into subpackages."""
