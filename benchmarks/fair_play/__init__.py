"""Does a solution keep to the rules? What looks otherwise is flagged, never dropped."""
