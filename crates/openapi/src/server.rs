//! Base URLs: servers, their variables, and references relative to a file.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::description::{Description, Node, Version};
use crate::uri::{is_absolute, join};

/// How many servers of one list are read. Further ones are ignored.
const MAX_SERVERS: usize = 20;

impl Description {
    /// The base URLs of the whole API, in the order of the description, without a `/` at the end.
    /// `variables` replace the defaults of server variables.
    pub fn servers(&self, variables: &BTreeMap<String, String>) -> Vec<String> {
        let root = self.root();
        match self.version() {
            Version::V2 => self.swagger_servers(root),
            _ => self.read_servers(root, variables).unwrap_or_default(),
        }
    }

    /// The `servers` of a description, a path or an operation. `None` if there are none.
    pub(crate) fn read_servers(
        &self,
        owner: Node<'_>,
        variables: &BTreeMap<String, String>,
    ) -> Option<Vec<String>> {
        let servers: Vec<_> = owner.get("servers")?.items().take(MAX_SERVERS).collect();
        let urls = servers.iter().filter_map(|server| {
            let url = fill(server.text("url")?, *server, variables);
            self.absolute(*server, &url)
        });
        Some(urls.collect()).filter(|urls: &Vec<_>| !urls.is_empty())
    }

    /// A URL of a server, resolved against the description.
    fn absolute(&self, node: Node<'_>, url: &str) -> Option<String> {
        let url = url.trim();
        let url = if is_absolute(url) { url.to_owned() } else { join(self.uri(node), url)? };
        let is_http = url.starts_with("http://") || url.starts_with("https://");
        let end = url.find(['?', '#']).unwrap_or(url.len());
        is_http.then(|| url[..end].trim_end_matches('/').to_owned())
    }

    fn swagger_servers(&self, root: Node<'_>) -> Vec<String> {
        let path = root.text("basePath").unwrap_or("/");
        let Some(host) = root.text("host") else {
            return self.absolute(root, path).into_iter().collect();
        };
        let listed = root.get("schemes");
        let mut schemes: Vec<_> =
            listed.into_iter().flat_map(Node::items).filter_map(|s| s.value.as_str()).collect();
        if schemes.is_empty() {
            let of_file = self.uri(root).split(':').next();
            schemes.extend(of_file.filter(|scheme| ["http", "https"].contains(scheme)));
        }
        if schemes.is_empty() || schemes.contains(&"https") {
            schemes = vec!["https"];
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        let urls = schemes.iter().map(|scheme| format!("{scheme}://{host}{slash}{path}"));
        urls.filter_map(|url| self.absolute(root, &url)).take(MAX_SERVERS).collect()
    }
}

/// Fills the variables of a server's URL. A variable without a value keeps its name.
fn fill(url: &str, server: Node<'_>, given: &BTreeMap<String, String>) -> String {
    let declared = server.get("variables");
    let mut out = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            rest = after;
            break;
        };
        let variable = declared.and_then(|variables| variables.get(name));
        let default = || match variable?.value.get("default")? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let first = || variable?.get("enum")?.items().next()?.value.as_str().map(str::to_owned);
        let value = given.get(name).cloned().or_else(default).or_else(first);
        out.push_str(&value.unwrap_or_else(|| name.to_owned()));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(uri: &str, text: &str) -> Vec<String> {
        let description = Description::parse(uri, text.as_bytes()).unwrap();
        description.servers(&BTreeMap::from([("region".into(), "eu".into())]))
    }

    #[test]
    fn servers_are_absolute_and_their_variables_filled() {
        let text = "openapi: 3.0.0\npaths: {}\nservers:\n- url: https://{region}.{env}.test:{port}/v1/\n  variables: {region: {default: us}, env: {enum: [live, dev]}, port: {default: 8443}}\n- url: /v2\n- url: 'ftp://x'\n";
        assert_eq!(
            servers("https://docs.test/a/api.yaml", text),
            ["https://eu.live.test:8443/v1", "https://docs.test/v2"]
        );
        assert_eq!(servers("file:///a/api.yaml", "openapi: 3.0.0\npaths: {}"), [""; 0]);
    }

    #[test]
    fn swagger_prefers_https_and_falls_back_to_the_host_of_the_file() {
        let text =
            "swagger: '2.0'\npaths: {}\nhost: api.test\nbasePath: /v1\nschemes: [http, https]";
        assert_eq!(servers("file:///x", text), ["https://api.test/v1"]);
        let text = "swagger: '2.0'\npaths: {}\nbasePath: v1";
        assert_eq!(servers("http://127.0.0.1:8888/spec.json", text), ["http://127.0.0.1:8888/v1"]);
        assert_eq!(servers("file:///x", text), [""; 0]);
        let text = "swagger: '2.0'\npaths: {}\nhost: api.test";
        assert_eq!(servers("http://127.0.0.1/spec.json", text), ["http://api.test"]);
    }
}
