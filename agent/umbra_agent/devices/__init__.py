"""What this machine computes with, as a report says it. What cannot be measured is None."""
