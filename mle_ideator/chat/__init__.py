"""Chat models: one file an API, each on its official client, which is imported when it is used.

An *endpoint* (`calls.Endpoint`) makes one try and says what kind of failure it met. Everything that
is the same for all of them (the cap on cost, options that a model refuses, retries) is in
`calls.PatientModel`. What is the same for all HTTP APIs is in `clients.HttpEndpoint`; what servers
say when something is wrong is read in `failures`, and nowhere else.
"""
