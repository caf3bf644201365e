//! MCP Apps: an HTML view that hosts show for the results of a tool. To clients without views the
//! tool is like any other.

use std::sync::Arc;

use sabir_registry::{Offer, Outcome, Pending, ResourceCall, Source};
use sabir_wire::types::{Resource, ResourceContents, ResourceReply};
use sabir_wire::types::{UiCsp, UiTool, UiView, VIEW};
use sabir_wire::{Problem, Raw};

#[cfg(feature = "commands")]
use crate::text::File;

/// An HTML view of a tool, and who may call the tool.
///
/// ```
/// use sabir_sources::app::{App, Permission};
///
/// let map = App::html("<!DOCTYPE html><title>Map</title>…")
///     .connect("https://tiles.example.com")
///     .permission(Permission::Geolocation)
///     .border(false);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct App {
    html: Option<Html>,
    uri: Option<String>,
    title: Option<String>,
    description: Option<String>,
    visibility: Vec<Visibility>,
    permissions: Vec<Permission>,
    csp: UiCsp,
    view: UiView,
}

#[derive(Clone, Debug)]
enum Html {
    Text(Arc<str>),
    /// It is read for every request.
    #[cfg(feature = "commands")]
    File(File),
}

/// Who may call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The model of the host.
    Model,
    /// Views of this server.
    App,
}

/// An ability of the browser that a view asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The user's position.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl Visibility {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Model, Self::App];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::App => "app",
        }
    }
}

impl Permission {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Camera, Self::Microphone, Self::Geolocation, Self::ClipboardWrite];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }
}

impl App {
    /// A view that is this HTML document. The host lets it load from and send to the named origins
    /// only.
    pub fn html(html: impl Into<Arc<str>>) -> Self {
        Self { html: Some(Html::Text(html.into())), ..Self::default() }
    }

    /// A view in a file, which is read for every request.
    #[cfg(feature = "commands")]
    pub fn file(path: impl Into<std::path::PathBuf>) -> Self {
        let file = File::new(path.into(), Some(VIEW.to_owned()));
        Self { html: Some(Html::File(file)), ..Self::default() }
    }

    /// The view of Sabir: a list of search results, a table, or the text of the result.
    pub fn built_in() -> Self {
        Self::html(include_str!("app/view.html"))
    }

    /// No view: only says who may call the tool.
    pub fn without_view() -> Self {
        Self::default()
    }

    /// Sets the URI of the view, which begins with `ui://`. The default is `ui://views/` and the
    /// name of the tool.
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Sets the name of the view for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Describes the view.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Allows requests and WebSockets to an origin, such as `https://api.example.com`.
    pub fn connect(mut self, origin: impl Into<String>) -> Self {
        self.csp.connect.push(origin.into());
        self
    }

    /// Allows scripts, styles, images, fonts and media of an origin.
    pub fn resources(mut self, origin: impl Into<String>) -> Self {
        self.csp.resources.push(origin.into());
        self
    }

    /// Sets all origins.
    pub fn csp(mut self, csp: UiCsp) -> Self {
        self.csp = csp;
        self
    }

    /// Asks for an ability of the browser. Hosts may refuse it.
    pub fn permission(mut self, permission: Permission) -> Self {
        if !self.permissions.contains(&permission) {
            self.permissions.push(permission);
        }
        self
    }

    /// Sets who may call the tool; the model and views, unless set. Clients without views ignore it.
    pub fn visibility(mut self, visibility: impl IntoIterator<Item = Visibility>) -> Self {
        self.visibility = visibility.into_iter().collect();
        self
    }

    /// Asks for a separate origin for the view, in the form that the host documents.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.view.domain = Some(domain.into());
        self
    }

    /// Says whether the host should draw a border around the view. By default the host decides.
    pub fn border(mut self, border: bool) -> Self {
        self.view.prefers_border = Some(border);
        self
    }

    fn listed(&self, tool: &str) -> Resource {
        let empty = Some("{}");
        let permissions: Vec<_> = self.permissions.iter().map(|one| (one.name(), empty)).collect();
        let permissions = Raw::empty_object().with_members(&permissions);
        let view = UiView {
            csp: (self.csp != UiCsp::default()).then(|| self.csp.clone()),
            permissions: (!self.permissions.is_empty()).then_some(permissions),
            ..self.view.clone()
        };
        Resource {
            uri: self.uri.clone().unwrap_or_else(|| format!("ui://views/{tool}")),
            name: tool.to_owned(),
            title: self.title.clone(),
            description: self.description.clone(),
            mime_type: Some(VIEW.to_owned()),
            meta: view.to_meta(),
            ..Resource::default()
        }
    }
}

/// Gives a tool of any source a view.
#[derive(Clone, Debug)]
pub struct AppSource {
    tool: String,
    ui: UiTool,
    view: Option<(Resource, Html)>,
}

impl AppSource {
    /// The view of the tool of that name.
    pub fn new(tool: impl Into<String>, app: &App) -> Self {
        let tool = tool.into();
        let view = app.html.clone().map(|html| (app.listed(&tool), html));
        let ui = UiTool {
            resource_uri: view.as_ref().map(|(listed, _)| listed.uri.clone()),
            visibility: app.visibility.iter().map(|one| one.name().to_owned()).collect(),
            ..UiTool::default()
        };
        Self { tool, ui, view }
    }
}

impl Source for AppSource {
    fn name(&self) -> String {
        format!("app of `{}`", self.tool)
    }

    fn offer(&self) -> Offer {
        let listed = self.view.iter().map(|(listed, _)| listed.clone());
        let apps = vec![(self.tool.clone(), self.ui.clone())];
        Offer { apps, resources: listed.collect(), ..Offer::default() }
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let Some((listed, html)) = self.view.clone().filter(|(own, _)| own.uri == *call.uri) else {
            return Box::pin(async { Err(Problem::UnknownResource(call.uri)) });
        };
        Box::pin(async move {
            let (contents, cache) = match html {
                // The text is fixed until a restart, so clients may cache it as long as the list.
                Html::Text(html) => {
                    (ResourceContents::text(&*call.uri, VIEW, &*html), Offer::default().cache)
                }
                #[cfg(feature = "commands")]
                Html::File(file) => {
                    (file.read().await?.into_resource(&call.uri), Default::default())
                }
            };
            let contents = ResourceContents { meta: listed.meta, ..contents };
            Ok(Outcome::Done(ResourceReply { cache, ..contents.into() }))
        })
    }
}
