// File locations in URLs.

/** Return the pane's parameters for the URL of a file's page; null for any other URL. */
export function placeOf(href) {
  const url = new URL(href, location.href);
  if (url.origin !== location.origin || !url.pathname.startsWith("/file/")) return null;
  const encoded = url.pathname.slice("/file/".length);
  const asked = { at: decodeURIComponent(encoded), encoded, line: Number(url.hash.slice(2)) || null };
  for (const name of ["from", "to", "symbol"]) asked[name] = url.searchParams.get(name) ?? "";
  return asked;
}

/** Return the URL of a file's page, or of a part of it. */
export function fileAddress(encoded, asked, folder = "/file/") {
  const query = new URLSearchParams();
  for (const name of ["from", "to", "symbol"]) if (asked[name]) query.set(name, asked[name]);
  return folder + encoded + (query.size ? `?${query}` : "");
}

export function encoded(place) {
  return place.toWellFormed().split("/").map(encodeURIComponent).join("/");
}
