"""Concurrent tasks: signs of life (heartbeat, renewal, fence, detection) and claiming."""
