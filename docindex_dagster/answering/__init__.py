"""Answers with sources: prompts, citations that are checked without a model, conversations, answers without a model."""
