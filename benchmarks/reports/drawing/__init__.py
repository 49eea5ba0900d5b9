"""Plots as a person would put them into a paper: matplotlib to SVG and PDF, imported when used.

theme     colours, line styles and sizes: the same contender looks the same everywhere
charts    lines with bands, points with intervals: they know data, not runs
svg       a figure as a file of its own, or as a part of the page
"""
