//! A folder of articles.
mod date;
mod frontmatter;
mod value;
mod words;
mod yaml;
