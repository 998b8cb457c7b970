"""How long a node may be silent. Source: SPEC §3, compute_nodes."""


def interval_s(kept_s: float | None, *, default_s: float) -> float:
    """Return the rhythm to promise: the controller's, or the node's own if that is slower."""
    return default_s if kept_s is None else max(kept_s, default_s)
