"""What `docindex version` and `docindex support` say: enough to understand a bug report, and nothing that is secret."""
