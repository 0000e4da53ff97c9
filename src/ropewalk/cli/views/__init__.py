"""Pure functions from JSON to what is drawn; whatever comes from users is shown as text and nothing else."""
