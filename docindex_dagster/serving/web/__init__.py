"""Web page: HTML rendered by the server, with some JavaScript to make it faster."""
