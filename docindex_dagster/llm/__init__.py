"""Language models: a prompt in, a text out, whoever answers."""
