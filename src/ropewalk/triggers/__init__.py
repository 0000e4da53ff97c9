"""What starts executions besides a call: schedules, events, webhooks and queues turn a happening into a start."""
