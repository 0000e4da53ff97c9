"""What a person sees: pure functions from JSON to tables and text. Users' values are shown as text and nothing else."""
