"""Text embedding: providers, batching and vector reuse."""
