"""Retrievers for frameworks that build programs around language models; docs/integrations.md shows them.

Each module needs the framework that it is named after, which an extra of the same name installs; nothing else imports
them.
"""
