"""What can be asked of an index: each module has a request, which any transport fills, and the function that answers.

A request's fields have names, types, defaults, limits and descriptions. Command-line options, query parameters, tool
schemas and keyword arguments are derived from them.
"""
