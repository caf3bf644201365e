//! Progress on the terminal, and questions to the user.

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sabir_client::{Answerer, Answering};
use sabir_wire::types::{Elicit, LogMessage, Progress, Question};
use sabir_wire::{Code, ErrorObject, Raw};
use serde_json::{Map, Value, json};

use crate::escape::escaped;
use crate::report::say;

/// The user's terminal. Everything is written to standard error; answers are lines of standard
/// input.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    bar: OnceLock<ProgressBar>,
}

impl Terminal {
    /// Removes the progress bar.
    pub(super) fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }

    /// Writes a line, above the progress bar if there is one.
    fn say(&self, text: &str) {
        match self.bar.get() {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }

    /// Asks for one value after the other.
    async fn fill_in(&self, schema: &Raw) -> Value {
        let required = schema.member("required").and_then(|names| names.read::<Vec<String>>().ok());
        let required = required.unwrap_or_default();
        let properties = schema.member("properties").map(|all| all.members()).unwrap_or_default();
        let mut content = Map::new();
        for (name, property) in properties {
            let property: Value = property.read().unwrap_or_default();
            loop {
                self.say(&prompt(&name, &property, required.contains(&name)));
                let Some(line) = read_line().await else { return json!({ "action": "cancel" }) };
                if line.is_empty() {
                    match property.get("default") {
                        Some(default) => content.insert(name.clone(), default.clone()),
                        None if required.contains(&name) => return json!({ "action": "decline" }),
                        None => None,
                    };
                    break;
                }
                match parse(&line, &property) {
                    Ok(value) => {
                        content.insert(name.clone(), value);
                        break;
                    }
                    Err(expected) => self.say(&format!("invalid value (expected {expected})")),
                }
            }
        }
        if content.is_empty() {
            // Nothing was typed that could be taken for consent.
            return self.confirm("press Enter to accept, or type n to decline:", content).await;
        }
        json!({ "action": "accept", "content": content })
    }

    /// Asks for consent.
    async fn confirm(&self, prompt: &str, content: Map<String, Value>) -> Value {
        self.say(prompt);
        match read_line().await.as_deref() {
            None => json!({ "action": "cancel" }),
            Some(word) if ["n", "no"].contains(&&*word.to_ascii_lowercase()) => {
                json!({ "action": "decline" })
            }
            Some(_) => json!({ "action": "accept", "content": content }),
        }
    }

    async fn visit(&self) -> Value {
        let prompt = "open the page, then press Enter to go on, or type n to decline:";
        let mut answer = self.confirm(prompt, Map::new()).await;
        // A page has no content.
        answer.as_object_mut().and_then(|answer| answer.remove("content"));
        answer
    }
}

impl Answerer for Terminal {
    fn answer(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            let Question::Elicit(elicit) = question else {
                return Err(ErrorObject::new(Code::METHOD_NOT_FOUND, "only the user can be asked"));
            };
            let (message, rest) = match &elicit {
                Elicit::Form { message, .. } => (message, String::new()),
                Elicit::Url { message, url, .. } => (message, format!("\n  {url}")),
            };
            self.say(&format!("the server asks: {message}{rest}"));
            Ok(Raw::from(match elicit {
                Elicit::Form { schema, .. } => self.fill_in(&schema).await,
                Elicit::Url { .. } => self.visit().await,
            }))
        })
    }

    fn progress(&self, progress: &Progress) {
        let message = progress.message.as_deref().unwrap_or_default();
        if !std::io::stderr().is_terminal() {
            let total = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
            return say(format!("progress {}{total} {message}", progress.progress).trim_end());
        }
        let bar = self.bar.get_or_init(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} [{bar:30}] {percent}% {wide_msg}");
            style.map_or(bar.clone(), |style| bar.with_style(style.progress_chars("=> ")))
        });
        // Progress may be a fraction; the bar counts whole steps.
        let steps = |number: f64| (number.clamp(0.0, 1e12) * 1000.0) as u64;
        bar.set_length(progress.total.map_or(0, steps));
        bar.set_position(steps(progress.progress));
        bar.set_message(escaped(message).into_owned());
    }

    fn log(&self, message: &LogMessage) {
        let data = message.data.read::<String>().unwrap_or_else(|_| message.data.text().to_owned());
        let level = format!("{:?}", message.level).to_lowercase();
        self.say(&format!("{level}: {data}"));
    }
}

/// The next line of standard input; `None` at its end. Only a thread can wait for the user: the call
/// may end meanwhile, and nothing is written after that.
async fn read_line() -> Option<String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.is_ok_and(|read| read > 0).then(|| line.trim().to_owned())
    });
    read.await.unwrap_or_default()
}

fn prompt(name: &str, property: &Value, is_required: bool) -> String {
    let text = |key: &str| property[key].as_str();
    let title = text("title").unwrap_or(name);
    let mut line = format!("  {title}");
    if let Some(description) = text("description") {
        line.push_str(&format!(", {description}"));
    }
    let choices = choices(property);
    if !choices.is_empty() {
        line.push_str(&format!(" ({})", choices.join(", ")));
    }
    match property.get("default") {
        Some(default) => line.push_str(&format!(" [{default}]")),
        None if is_required => {}
        None => line.push_str(" [none]"),
    }
    line.push(':');
    line
}

/// The values that may be chosen.
fn choices(property: &Value) -> Vec<String> {
    let items = &property["items"];
    let lists = [&property["enum"], &property["oneOf"], &items["enum"], &items["anyOf"]];
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    let all = all.filter_map(|choice| choice.as_str().or_else(|| choice["const"].as_str()));
    all.map(str::to_owned).collect()
}

fn parse(line: &str, property: &Value) -> Result<Value, String> {
    let choices = choices(property);
    let is_choice = |word: &str| choices.is_empty() || choices.iter().any(|choice| choice == word);
    let none_of = || format!("one of {}", choices.join(", "));
    match property["type"].as_str() {
        Some("boolean") => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(json!(true)),
            "n" | "no" | "false" => Ok(json!(false)),
            _ => Err("yes or no".to_owned()),
        },
        Some("integer") => {
            line.parse::<i64>().map(Value::from).map_err(|_| "an integer".to_owned())
        }
        Some("number") => {
            let number = line.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Value::from).ok_or_else(|| "a number".to_owned())
        }
        Some("array") => {
            let words: Vec<&str> = line.split(',').map(str::trim).collect();
            if words.iter().all(|word| is_choice(word)) { Ok(json!(words)) } else { Err(none_of()) }
        }
        _ if is_choice(line) => Ok(json!(line)),
        _ => Err(none_of()),
    }
}
