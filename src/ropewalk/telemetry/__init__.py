"""What operators see: traces, metrics and logs, all made of what is durable, so that none tells of what never was.

A worker without telemetry pays nothing for this: its engine has no observer. `watch` is the observer, the other files
are where it writes.
"""
