"""From the measures of many runs to what people read: tables, JSON, CSV, one HTML page."""
