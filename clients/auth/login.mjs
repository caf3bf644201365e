// A person's browser at the development pages of oidc-provider: logs in, consents, and returns the
// URL that the authorization server sends the browser back to.

export async function login(start, name, callback) {
  const cookies = new Map();
  const open = async (url, form) => {
    const response = await fetch(url, {
      redirect: "manual",
      method: form ? "POST" : "GET",
      headers: {
        cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join("; "),
        ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}),
      },
      body: form && new URLSearchParams(form).toString(),
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair] = line.split(";");
      const [key, value] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      cookies.set(key, value);
    }
    return response;
  };

  let url = new URL(start);
  let form;
  for (let step = 0; step < 20; step++) {
    const response = await open(url, form);
    form = undefined;
    const location = response.headers.get("location");
    if (location) {
      url = new URL(location, url);
      if (url.href.startsWith(callback)) return url;
      continue;
    }
    const page = await response.text();
    const prompt = page.match(/name="prompt" value="(\w+)"/)?.[1];
    const action = page.match(/<form[^>]*action="([^"]+)"/)?.[1];
    if (!prompt || !action) throw new Error(`${url} shows no form (${response.status}):\n${page}`);
    url = new URL(action, url);
    form = { prompt, login: name, password: "any" };
  }
  throw new Error("the login never ended");
}
