"""Answers that take their time: live streams, large downloads, and `?wait=`."""
