// Local storage of this browser: preferences and conversations, but no search results.
const PREFIX = "docindex.";

export function kept(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Store a value, or delete it for null. Return whether it will still be there on the next visit. */
export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
    return true;
  } catch {
    return false;
  }
}
