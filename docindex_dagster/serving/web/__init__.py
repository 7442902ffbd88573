"""The page: HTML that the server writes, with some JavaScript that makes it quick."""
