// What this browser keeps: choices, and the conversations of those who ask; nothing of what is searched.
const PREFIX = "docindex.";

export function kept(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Whether it will be there when the page comes again; else it holds until the page is left. */
export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
    return true;
  } catch {
    return false;
  }
}
