// Asking the server for parts of pages.

/** The HTML of a part; null where something newer was asked meanwhile. The session may have ended: then log in. */
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

/** Only the newest of several requests is answered: those before are aborted. */
export function newest() {
  let controller = null;
  return (address) => {
    controller?.abort();
    controller = new AbortController();
    return part(address, controller.signal);
  };
}

/** The content of a whole page that stands for a problem, or of a part. */
export function content(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const main = parsed.querySelector("main");
  return [...(main ?? parsed.body).childNodes];
}
