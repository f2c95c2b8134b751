"""Example training scripts, and the demonstration that ``make demo`` runs."""
