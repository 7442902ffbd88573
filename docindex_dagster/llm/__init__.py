"""Language models: a prompt in, a text out, of any provider."""
