// A person with a browser at the development pages of oidc-provider, who logs in and consents wherever
// that is asked.

export class Browser {
  /// Cookies by origin, by name.
  #jars = new Map();

  constructor(name) {
    this.name = name;
  }

  /// Opens a page, or sends a form. No redirect is followed.
  async open(url, form) {
    const jar = this.#jars.get(url.origin) ?? new Map();
    this.#jars.set(url.origin, jar);
    const response = await fetch(url, {
      redirect: "manual",
      method: form ? "POST" : "GET",
      headers: {
        cookie: [...jar].map(([key, value]) => `${key}=${value}`).join("; "),
        ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}),
      },
      body: form && new URLSearchParams(form).toString(),
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair] = line.split(";");
      jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    return response;
  }

  /// Follows a link to the last page: its URL, status and text. A redirect for which `isEnd` holds is
  /// the end.
  async visit(start, isEnd = () => false) {
    let url = new URL(start);
    let form;
    for (let step = 0; step < 30; step++) {
      const response = await this.open(url, form);
      form = undefined;
      const location = response.headers.get("location");
      if (location) {
        url = new URL(location, url);
        if (isEnd(url)) return { url };
        continue;
      }
      const text = await response.text();
      const prompt = text.match(/name="prompt" value="(\w+)"/)?.[1];
      const action = text.match(/<form[^>]*action="([^"]+)"/)?.[1];
      if (!prompt || !action) return { url, status: response.status, text };
      url = new URL(action, url);
      form = { prompt, login: this.name, password: "any" };
    }
    throw new Error("the login never ended");
  }
}

/// Logs in, and returns the URL that the authorization server sends the browser back to.
export async function login(start, name, callback) {
  const last = await new Browser(name).visit(start, (url) => url.href.startsWith(callback));
  if (last.text) throw new Error(`${last.url} shows no form (${last.status}):\n${last.text}`);
  return last.url;
}
