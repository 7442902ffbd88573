// What this browser keeps: choices alone, nothing of what is searched.
const PREFIX = "docindex.";

export function kept(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // It holds until the page is left.
  }
}
