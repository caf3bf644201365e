//! Values that look like secrets become references to environment variables.

use std::collections::BTreeMap;

/// Parts of names whose values are secrets.
const WORDS: [&str; 14] = [
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "secret",
    "token",
];

/// Last parts of names whose values are only the location of a secret.
const PLACES: [&str; 6] = ["file", "path", "dir", "folder", "url", "uri"];

/// The beginnings of the tokens that well-known services issue.
const PREFIXES: [&str; 23] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "sbp_",
    "SG.",
    "lin_api_",
    "figd_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
    "pypi-",
];

/// The shortest token of these services.
const LEAST_LENGTH: usize = 16;

/// The secrets of all servers, and the variables that replace them.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    values: BTreeMap<String, String>,
    server: String,
    /// The variables of this server.
    found: Vec<String>,
    /// The variables of this server for which its client asks.
    asked: Vec<String>,
}

impl Secrets {
    /// Goes on with another server.
    pub(super) fn begin(&mut self, server: &str) {
        server.clone_into(&mut self.server);
        self.found.clear();
        self.asked.clear();
    }

    /// The variables that replace secrets of this server.
    pub(super) fn found(&self) -> &[String] {
        &self.found
    }

    /// The variables that replace `${input:…}` of this server.
    pub(super) fn asked(&self) -> &[String] {
        &self.asked
    }

    /// References to variables, as `${NAME}`: clients also write `${env:NAME}`, `${input:name}` and
    /// `{env:NAME}`.
    pub(super) fn reference(&mut self, value: &str) -> String {
        let value = value.replace("${env:", "${").replace("{env:", "${");
        let Some((before, after)) = value.split_once("${input:") else { return value };
        let (id, rest) = after.split_once('}').unwrap_or((after, ""));
        let variable = id.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let written = format!("{before}${{{variable}}}");
        if !self.asked.contains(&variable) {
            self.asked.push(variable);
        }
        written + &self.reference(rest)
    }

    /// The value of an environment variable.
    pub(super) fn variable(&mut self, name: &str, value: &str) -> String {
        let value = self.reference(value);
        if !is_plain(&value) || !(is_secret_name(name) || is_token(&value)) {
            return self.url(value);
        }
        // Two servers may have different values of the same name.
        match self.values.get(name) {
            Some(other) if *other != value => self.kept(name, &value),
            _ => self.kept_as(name.to_owned(), &value),
        }
    }

    /// The value of a header.
    pub(super) fn header(&mut self, name: &str, value: &str) -> String {
        let value = self.reference(value);
        let (scheme, token) = match value.split_once(' ') {
            Some((scheme, token)) if ["Bearer", "Basic", "token"].contains(&scheme) => {
                (format!("{scheme} "), token)
            }
            _ => (String::new(), value.as_str()),
        };
        if !is_plain(token) || !(is_secret_name(name) || is_token(token)) {
            return value;
        }
        format!("{scheme}{}", self.kept(name, token))
    }

    /// A word of a command line, after the word `before`.
    pub(super) fn word(&mut self, before: Option<&str>, word: &str) -> String {
        let word = self.reference(word);
        let option = before.filter(|before| before.starts_with('-')).unwrap_or_default();
        let option = option.trim_start_matches('-');
        if !is_plain(&word) {
            return word;
        }
        if let Some((name, value)) = word.split_once(':').filter(|_| is_header_option(option)) {
            let blank = &value[..value.len() - value.trim_start().len()];
            return format!("{name}:{blank}{}", self.header(name, value.trim_start()));
        }
        if !word.starts_with('-') && (is_secret_name(option) || is_token(&word)) {
            let name = if option.is_empty() { "secret" } else { option };
            return self.kept(name, &word);
        }
        if let Some((name, value)) = word.split_once('=')
            && !name.contains("://")
            && (is_secret_name(name.trim_start_matches('-')) || is_token(value))
        {
            let variable = self.kept(name.trim_start_matches('-'), value);
            return format!("{name}={variable}");
        }
        self.url(word)
    }

    /// A URL, in which the password and members of the query may be secrets; other texts stay.
    pub(super) fn url(&mut self, url: String) -> String {
        let Some((scheme, rest)) = url.split_once("://") else { return url };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let authority =
            match authority.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
                Some((Some((user, password)), host)) if is_plain(password) => {
                    format!("{user}:{}@{host}", self.kept("password", password))
                }
                _ => authority.to_owned(),
            };
        let Some((path, query)) = rest.split_once('?') else {
            return format!("{scheme}://{authority}{rest}");
        };
        let members = query.split('&').map(|member| match member.split_once('=') {
            Some((name, value)) if is_plain(value) && (is_secret_name(name) || is_token(value)) => {
                format!("{name}={}", self.kept(name, value))
            }
            _ => member.to_owned(),
        });
        let members: Vec<_> = members.collect();
        format!("{scheme}://{authority}{path}?{}", members.join("&"))
    }

    /// A reference to a variable that is named after the server.
    fn kept(&mut self, name: &str, value: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let variable: String = format!("{}_{name}", self.server).chars().map(plain).collect();
        let mut free = variable.clone();
        let mut nth = 1;
        while self.values.get(&free).is_some_and(|other| other != value) {
            nth += 1;
            free = format!("{variable}_{nth}");
        }
        self.kept_as(free, value)
    }

    fn kept_as(&mut self, variable: String, value: &str) -> String {
        let reference = format!("${{{variable}}}");
        if !self.found.contains(&variable) {
            self.found.push(variable.clone());
        }
        self.values.insert(variable, value.to_owned());
        reference
    }
}

/// Whether a value is neither empty nor a reference.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && !value.contains("${")
}

fn is_header_option(option: &str) -> bool {
    ["header", "headers", "H"].contains(&option)
}

fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let parts: Vec<_> = lower.split(['_', '-', '.']).collect();
    let is_secret = |part: &&str| {
        let is_word = |word: &&str| part == word || word.len() > 3 && part.ends_with(*word);
        part.ends_with("apikey") || WORDS.iter().any(is_word)
    };
    // `pass` may also mean to pass something on, and a shell has its folder in `PWD`.
    let is_password = |last: &&str| {
        last.ends_with("pass") || last.ends_with("pwd") && !["pwd", "oldpwd"].contains(&&*lower)
    };
    !parts.last().is_some_and(|last| PLACES.contains(last))
        && (parts.iter().any(is_secret) || parts.last().is_some_and(is_password))
}

fn is_token(value: &str) -> bool {
    let is_long = value.len() >= LEAST_LENGTH && !value.contains(char::is_whitespace);
    is_long && PREFIXES.iter().any(|prefix| value.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_server() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.begin("my-db");
        secrets
    }

    #[test]
    fn secrets_on_a_command_line_become_references() {
        for (before, word, expected) in [
            (Some("--token"), "hush", "${MY_DB_TOKEN}"),
            (Some("-y"), "server-name", "server-name"),
            (None, "--api-key=hush", "--api-key=${MY_DB_API_KEY}"),
            (None, "--key-file=/etc/key", "--key-file=/etc/key"),
            (None, "--token=${T}", "--token=${T}"),
            (None, "--pass=hunter2", "--pass=${MY_DB_PASS}"),
            (None, "--pass-through=all", "--pass-through=all"),
            (None, "sk_live_0123456789", "${MY_DB_SECRET}"),
            (None, "SG.0123456789abcdef", "${MY_DB_SECRET}"),
            (None, "GITHUB_TOKEN=hush", "GITHUB_TOKEN=${MY_DB_GITHUB_TOKEN}"),
            (None, "ghp_0123456789abcdef", "${MY_DB_SECRET}"),
            (
                Some("--header"),
                "Authorization: Bearer hush",
                "Authorization: Bearer ${MY_DB_AUTHORIZATION}",
            ),
            (Some("--header"), "Authorization:${env:AUTH}", "Authorization:${AUTH}"),
            (Some("--header"), "X-Team: blue", "X-Team: blue"),
            (None, "postgres://me:hush@h:5432/d", "postgres://me:${MY_DB_PASSWORD}@h:5432/d"),
            (None, "https://h/mcp?a=b&api_key=hush", "https://h/mcp?a=b&api_key=${MY_DB_API_KEY}"),
            (None, "https://me@h/mcp#x", "https://me@h/mcp#x"),
            (None, "/home/me/keys", "/home/me/keys"),
        ] {
            let mut secrets = of_server();
            let written = secrets.word(before, word);
            assert_eq!(written, expected);
            assert_eq!(secrets.found().is_empty(), !written.contains("MY_DB"), "{word}");
        }
    }

    #[test]
    fn different_values_have_different_variables() {
        let mut secrets = of_server();
        assert_eq!(secrets.variable("API_KEY", "one"), "${API_KEY}");
        assert_eq!(secrets.variable("API_KEY", "one"), "${API_KEY}");
        assert_eq!(secrets.word(Some("--key"), "a"), "${MY_DB_KEY}");
        assert_eq!(secrets.word(Some("--key"), "b"), "${MY_DB_KEY_2}");
        secrets.begin("other");
        assert_eq!(secrets.variable("API_KEY", "two"), "${OTHER_API_KEY}");
        assert_eq!(secrets.found(), ["OTHER_API_KEY"]);
        assert_eq!(secrets.variable("DATABASE", "pg://a:hush@h/d"), "pg://a:${OTHER_PASSWORD}@h/d");
        assert_eq!(secrets.variable("MODE", "fast"), "fast");
        for name in ["DB_PASS", "MYSQL_PWD", "PASSPHRASE", "BEARER", "JWT", "DBPASS"] {
            assert_eq!(secrets.variable(name, "hush"), format!("${{{name}}}"));
        }
        for name in ["PWD", "OLDPWD"] {
            assert_eq!(secrets.variable(name, "/srv/me"), "/srv/me");
        }
    }
}
