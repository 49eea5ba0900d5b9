"""One process for any ideator: `mle-ideator serve`.

`server` holds the socket, the signals and the orderly end; `app` the routes; `chat_route` the
OpenAI-compatible one; `admission` who may come in and who has to wait; `body` reads requests within
bounds; `guard` is the token; `answers` what clients are told; `metrics` what is counted; `schema`
the forms that both sides agree on (`ideators/remote.py` is the other side). Only modules that
`server` imports need the extra `serve`.
"""
