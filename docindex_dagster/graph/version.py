"""What decides the graph besides chunks, references and settings. Nothing is imported, since who only asks needs it."""

# Raise it when the same chunks and references give another graph.
GRAPH_VERSION = "17"
