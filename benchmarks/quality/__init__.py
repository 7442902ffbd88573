"""Search quality: files, passages, the gain from each signal, and the variation over repositories."""
