"""The nouns, as frozen values. Absent is None and zero is zero."""
