"""How the static model is made: from a list of repositories to the weights in the package."""
