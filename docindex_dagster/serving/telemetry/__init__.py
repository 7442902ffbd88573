"""What a server reports of itself: figures to Prometheus, and traces to who collects them."""
