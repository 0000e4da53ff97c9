"""What bodies, answers, cursors and refusals look like."""
