//! The floor: the least that a server can do with the same libraries and without the protocol.
//!
//! `floor http 127.0.0.1:PORT` is hyper alone. It parses only the fields of a request that an echo
//! needs, and yields to the runtime once before it answers a call of the tool `wait`.
//! `floor stdio` is a loop over lines that does the same, without a runtime to yield to.

use std::convert::Infallible;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

/// The fields of a request that an echo needs.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: std::borrow::Cow<'a, str>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let served = match args.as_slice() {
        ["stdio"] => serve_lines(),
        ["http", address] => serve_http(address),
        _ => return ExitCode::from(2),
    };
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Request<'_> {
    fn is_waiting(&self) -> bool {
        self.params.as_ref().is_some_and(|params| params.name == Some("wait"))
    }
}

fn answer(request: &Request<'_>, list: &str) -> Vec<u8> {
    let text = request.params.as_ref().and_then(|params| params.arguments.as_ref());
    let text = text.map_or("", |arguments| &*arguments.text);
    let mut out = Vec::with_capacity(text.len() + 128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(request.id.get().as_bytes());
    out.extend_from_slice(br#","result":"#);
    if request.method == "tools/list" {
        out.extend_from_slice(list.as_bytes());
    } else {
        out.extend_from_slice(br#"{"content":[{"type":"text","text":"#);
        // Writing a string into memory cannot fail.
        let _ = serde_json::to_writer(&mut out, text);
        out.extend_from_slice(b"}]}");
    }
    out.push(b'}');
    out
}

/// A list of twenty-one tools, as long as the one of the server under test.
fn list() -> String {
    let tool = |nth: usize| {
        format!(
            r#"{{"name":"search_{nth:02}","description":"Looks for something","inputSchema":{{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{{"query":{{"description":"What to look for","type":"string"}},"folder":{{"description":"Where to look","type":["string","null"]}}}},"required":["query"]}}}}"#
        )
    };
    let tools: Vec<String> = (0..21).map(tool).collect();
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

fn serve_lines() -> io::Result<()> {
    let mut input = io::BufReader::with_capacity(64 << 10, io::stdin().lock());
    let mut output = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let (mut line, list) = (Vec::new(), list());
    while input.read_until(b'\n', &mut line)? > 0 {
        // Notifications have no id and are not answered.
        if let Ok(request) = serde_json::from_slice(&line) {
            output.write_all(&answer(&request, &list))?;
            output.write_all(b"\n")?;
        }
        // Pipelined requests are answered in one write.
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn serve_http(address: &str) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        let list: &'static str = list().leak();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let serve = http1::Builder::new();
            let service = service_fn(move |request| echo(request, list));
            tokio::spawn(serve.serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn echo(
    request: hyper::Request<Incoming>,
    list: &'static str,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let answer = match serde_json::from_slice::<Request<'_>>(&body) {
        Ok(request) => {
            if request.is_waiting() {
                tokio::task::yield_now().await;
            }
            answer(&request, list)
        }
        Err(_) => Vec::new(),
    };
    let mut response = Response::new(Full::new(Bytes::from(answer)));
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
    Ok(response)
}
