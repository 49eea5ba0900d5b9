"""From the measures of many runs to what people read: tables, JSON, CSV, one HTML page, plots.

make        make_report: all of it
gathering   results folders -> Report, with contenders of the same name told apart
values      Report: everything that a report says, as report.json holds it
naming      what contenders are called, which runs are marked
by_task     scores of one task, over its seeds
table       what a table is: texts in rows and columns, the same in the terminal and on the page
tables, detail_tables   which tables there are
files       report.json, runs.csv, figures.csv
plots       which plots there are; drawing/ draws them
page, run_pages   the HTML page, and one of each run that it links to
"""
