"""HTML of the web page: templates, highlighted code, Markdown files, diagrams and links."""
