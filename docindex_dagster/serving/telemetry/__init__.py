"""What a server tells of itself: figures to Prometheus, and traces to who collects them."""
