//! MCP Apps: HTML views of tools. Spec: the extension `io.modelcontextprotocol/ui`.

use crate::json::{WriteJson as _, object};
use crate::raw::Raw;
use crate::revision::Revision;

/// The name of the extension.
pub const UI: &str = "io.modelcontextprotocol/ui";

/// The media type of a view.
pub const VIEW: &str = "text/html;profile=mcp-app";

/// The settings of the extension of a client that shows views.
pub const UI_CLIENT: &str = r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#;

object! {
    /// `_meta.ui` of a tool: its view, and who may call it.
    #[derive(Clone, Debug, Default, PartialEq)]
    UiTool {
        /// URI of the view, of the scheme `ui`.
        resource_uri: Option<String> = optional "resourceUri";
        /// Who may call the tool, `model` or `app`; both if empty.
        visibility: Vec<String> = optional "visibility";
    }
}

object! {
    /// `_meta.ui` of a view: settings for its host.
    #[derive(Clone, Debug, Default, PartialEq)]
    UiView {
        /// The origins that it uses; none, if absent.
        csp: Option<UiCsp> = optional "csp";
        /// The abilities of the browser that it uses, an object with an empty object for each.
        permissions: Option<Raw> = optional "permissions";
        /// An origin of its own, in the form that its host wants.
        domain: Option<String> = optional "domain";
        /// Whether its host should draw a border around it.
        prefers_border: Option<bool> = optional "prefersBorder";
    }
}

object! {
    /// The origins that a view uses, as `https://api.example.com`.
    #[derive(Clone, Debug, Default, PartialEq)]
    UiCsp {
        /// For requests and WebSockets.
        connect: Vec<String> = optional "connectDomains";
        /// For scripts, styles, images, fonts and media.
        resources: Vec<String> = optional "resourceDomains";
        /// For frames inside of it.
        frames: Vec<String> = optional "frameDomains";
        /// For its base URI.
        base_uris: Vec<String> = optional "baseUriDomains";
    }
}

impl UiTool {
    /// The `_meta` of a tool with these settings added.
    pub fn added_to(&self, meta: Option<&Raw>) -> Raw {
        added("ui", &self.to_raw(Revision::NEWEST), meta)
    }

    /// Whether a tool with this `_meta` has a view, or limits who may call it.
    pub fn is_in(meta: &Raw) -> bool {
        meta.member("ui").is_some_and(|ui| ui.is_object())
            || meta.member("ui/resourceUri").is_some()
    }
}

impl UiView {
    /// The `_meta` of a view.
    pub fn to_meta(&self) -> Option<Raw> {
        (*self != Self::default()).then(|| added("ui", &self.to_raw(Revision::NEWEST), None))
    }
}

fn added(name: &str, value: &Raw, meta: Option<&Raw>) -> Raw {
    let meta = meta.cloned().unwrap_or_default();
    meta.with_members(&[(name, Some(value.text()))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::ReadJson as _;

    #[test]
    fn a_tool_keeps_its_other_metadata_beside_its_view() {
        let ui = UiTool {
            resource_uri: Some("ui://a".into()),
            visibility: vec!["app".into()],
            ..UiTool::default()
        };
        let meta = ui.added_to(Some(&Raw::parse(r#"{"x":1.0,"ui":{}}"#).unwrap()));
        let expected = r#"{"x":1.0,"ui":{"resourceUri":"ui://a","visibility":["app"]}}"#;
        assert_eq!(meta.text(), expected);
        assert!(UiTool::is_in(&meta));
        assert!(UiTool::is_in(&Raw::parse(r#"{"ui/resourceUri":"ui://a"}"#).unwrap()));
        assert!(!UiTool::is_in(&Raw::parse(r#"{"gui":{}}"#).unwrap()));
        assert_eq!(UiTool::read_json(&meta.member("ui").unwrap()), Ok(ui));
    }

    #[test]
    fn a_view_says_only_what_was_said() {
        assert_eq!(UiView::default().to_meta(), None);
        let csp = UiCsp { connect: vec!["https://a.example".into()], ..UiCsp::default() };
        let view = UiView { csp: Some(csp), prefers_border: Some(false), ..UiView::default() };
        let expected =
            r#"{"ui":{"csp":{"connectDomains":["https://a.example"]},"prefersBorder":false}}"#;
        assert_eq!(view.to_meta().unwrap().text(), expected);
    }
}
