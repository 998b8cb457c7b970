"""What this machine computes with, as a report says it. What cannot be measured is None."""

from umbra_agent.devices.detection import Detection, Detector

__all__ = ["Detection", "Detector"]
