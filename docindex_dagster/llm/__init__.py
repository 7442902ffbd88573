"""Language models of any provider, each called with a prompt and returning text."""
