// Second sanitizer for the HTML of an answer. The server already escapes what a model wrote; this check would stop leaks.
const TAGS = new Set(
  "A BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR LI OL P PRE S SPAN STRONG TABLE TBODY TD TH THEAD TR UL".split(" "),
);
const PLACES = "/file/";

/** Return the sanitized nodes. Links may point only to indexed files, and headings rank below those of the page. */
export function safe(html) {
  const body = new DOMParser().parseFromString(html, "text/html").body;
  for (const element of body.querySelectorAll("*")) {
    if (!TAGS.has(element.tagName)) element.replaceWith(element.textContent);
    else for (const { name, value } of [...element.attributes]) if (!isWanted(name, value)) element.removeAttribute(name);
  }
  for (const heading of body.querySelectorAll("h1, h2, h3, h4, h5, h6")) lower(heading);
  for (const wide of body.querySelectorAll("pre, table")) wide.tabIndex = 0; // it scrolls on its own and must be focusable
  return [...body.childNodes];
}

function isWanted(name, value) {
  if (name === "href") return value.startsWith(PLACES);
  return name === "class" || name === "start";
}

function lower(heading) {
  const lowered = document.createElement(`h${Math.min(Number(heading.tagName[1]) + 2, 6)}`);
  lowered.append(...heading.childNodes);
  heading.replaceWith(lowered);
}
