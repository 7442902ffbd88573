"""Run the commands of the documentation and compare their output with what the pages show."""
