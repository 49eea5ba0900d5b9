"""`seek_help` as a tool of the Model Context Protocol: any agent may ask an ideator here.

`arguments` is what a foreign agent tells, `states` makes a help state of it, `tool` answers one
call, `over_stdio` and `over_http` carry calls, mended by `half_characters`.
"""
