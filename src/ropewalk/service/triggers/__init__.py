"""Triggers as callers keep them: declared with a version or made by hand, switched, fired, tried out, told about."""
