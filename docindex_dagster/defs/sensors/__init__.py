"""The sensors: what they notice, and when they ask for a run. A tick lists and stats, and reads no file."""
