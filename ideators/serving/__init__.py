"""One process for any ideator: `mle-ideator serve`.

`server` is a service from its start to its orderly end; `process` holds uvicorn and the signals,
for the MCP server as well; `app` the routes; `chat_route` the OpenAI-compatible one; `admission`
who may come in and who has to wait; `connections` and `body` keep clients within bounds; `guard` is
the token; `answers` what clients are told; `metrics` what is counted; `schema` the forms that both
sides agree on (`ideators/remote/` is the other side). Only modules that `server` imports need the
extra `serve`.
"""
