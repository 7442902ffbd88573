"""Training of the static model, from a list of repositories to the weights in the package."""
