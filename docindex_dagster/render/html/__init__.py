"""HTML of the page: templates, highlighted code, Markdown files, pictures and links."""
