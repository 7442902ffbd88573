// The chosen colours, before anything is painted.
try {
  const theme = localStorage.getItem("docindex.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // A browser that keeps nothing shows those of the system.
}
