"""Lost prose and remaining markup in loaded documents."""
