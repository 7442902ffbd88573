// The HTML of an answer, once more: the server makes no element of what a model wrote, and here none would pass.
const TAGS = new Set(
  "A BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR LI OL P PRE S SPAN STRONG TABLE TBODY TD TH THEAD TR UL".split(" "),
);
const PLACES = "/file/";

/** The nodes of the text; links lead to files of the index alone, and headings stand below those of the page. */
export function safe(html) {
  const body = new DOMParser().parseFromString(html, "text/html").body;
  for (const element of body.querySelectorAll("*")) {
    if (!TAGS.has(element.tagName)) element.replaceWith(element.textContent);
    else for (const { name, value } of [...element.attributes]) if (!isWanted(name, value)) element.removeAttribute(name);
  }
  for (const heading of body.querySelectorAll("h1, h2, h3, h4, h5, h6")) lower(heading);
  for (const wide of body.querySelectorAll("pre, table")) wide.tabIndex = 0; // it scrolls by itself
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
