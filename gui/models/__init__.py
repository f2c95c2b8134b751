"""Qt item models over core columns."""
