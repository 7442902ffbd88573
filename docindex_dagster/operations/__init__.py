"""Operations on an index: each module has a request and the function that answers it.

The fields of a request define names, types, defaults, limits and descriptions. Command-line options, query parameters
and tool schemas are derived from them.
"""
