//! A folder of articles.
mod article;
mod date;
mod folder;
mod format;
mod frontmatter;
mod problem;
mod sections;
mod shelf;
mod value;
mod words;
mod yaml;
