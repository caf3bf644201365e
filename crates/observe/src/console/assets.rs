//! The files of the console, as the browser runs them: without a build step.

/// The media type and the text of a file; `None` if there is none at that path.
pub(super) fn find(path: &str) -> Option<(&'static str, &'static str)> {
    const HTML: &str = "text/html; charset=utf-8";
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    const STYLE: &str = "text/css; charset=utf-8";
    Some(match path {
        "/" | "/console" => (HTML, include_str!("../../pages/index.html")),
        "/console/main.js" => (SCRIPT, include_str!("../../pages/main.js")),
        "/console/calls.js" => (SCRIPT, include_str!("../../pages/calls.js")),
        "/console/chart.js" => (SCRIPT, include_str!("../../pages/chart.js")),
        "/console/clients.js" => (SCRIPT, include_str!("../../pages/clients.js")),
        "/console/difference.js" => (SCRIPT, include_str!("../../pages/difference.js")),
        "/console/dom.js" => (SCRIPT, include_str!("../../pages/dom.js")),
        "/console/form.js" => (SCRIPT, include_str!("../../pages/form.js")),
        "/console/mcp.js" => (SCRIPT, include_str!("../../pages/mcp.js")),
        "/console/recording.js" => (SCRIPT, include_str!("../../pages/recording.js")),
        "/console/server.js" => (SCRIPT, include_str!("../../pages/server.js")),
        "/console/tools.js" => (SCRIPT, include_str!("../../pages/tools.js")),
        "/console/style.css" => (STYLE, include_str!("../../pages/style.css")),
        _ => return None,
    })
}
