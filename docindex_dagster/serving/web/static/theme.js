// Apply the chosen color scheme before the first paint.
try {
  const theme = localStorage.getItem("docindex.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without local storage, the system's color scheme applies.
}
