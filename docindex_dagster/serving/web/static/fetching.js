// Requests for parts of pages.

/** Return the HTML of a part, or null if a newer request replaced this one. If the session has ended, go to the login. */
export async function part(address, signal) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, signal });
    if (answer.redirected && new URL(answer.url).pathname === "/login") {
      location.assign("/login");
      return null;
    }
    return { ok: answer.ok, html: await answer.text() };
  } catch (error) {
    if (error.name === "AbortError") return null;
    return { ok: false, html: "", unreachable: true };
  }
}

/** Return a function that fetches a part and aborts its previous request. */
export function newest() {
  let controller = null;
  return (address) => {
    controller?.abort();
    controller = new AbortController();
    return part(address, controller.signal);
  };
}

/** Return the content of a part, or of a page that reports a problem. */
export function content(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const main = parsed.querySelector("main");
  return [...(main ?? parsed.body).childNodes];
}
