//! Formats numbers and tables.

use crate::spread::Spread;

/// Formats a number with three significant digits and separated thousands.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        "0".into()
    } else if magnitude < 0.095 {
        format!("{value:.4}")
    } else if magnitude < 9.95 {
        format!("{value:.2}")
    } else if magnitude < 99.5 {
        format!("{value:.1}")
    } else {
        let unit = 10_f64.powi((magnitude.log10().floor() as i32 - 2).max(0));
        thousands(((value / unit).round() * unit) as i64)
    }
}

fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0 { format!("-{out}") } else { out }
}

/// Formats a number of bytes with a fitting unit.
pub fn bytes(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude < 1000.0 {
        format!("{value:.0} B")
    } else if magnitude < 1e6 {
        format!("{} KB", number(value / 1e3))
    } else {
        format!("{} MB", number(value / 1e6))
    }
}

/// Formats the minimum and the maximum.
pub fn range(spread: &Spread) -> String {
    format!("{}–{}", number(spread.min), number(spread.max))
}

/// A Markdown table. All columns but the first are aligned right.
pub fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<&str> = (0..head.len()).map(|at| if at == 0 { "---" } else { "---:" }).collect();
    let mut out = line(head) + &format!("|{}|\n", rule.join("|"));
    for row in rows {
        out += &line(row);
    }
    out
}

/// A table for a terminal, with aligned columns.
pub fn aligned(head: &[String], rows: &[Vec<String>]) -> String {
    let lines: Vec<&[String]> =
        std::iter::once(head).chain(rows.iter().map(Vec::as_slice)).collect();
    let cell = |line: &[String], at: usize| line.get(at).map_or(0, |cell| cell.chars().count());
    let width = |at| lines.iter().map(|line| cell(line, at)).max().unwrap_or_default();
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        out += cells.collect::<Vec<String>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

/// Replaces the text between two marks. Returns `None` if a mark is missing.
pub fn replace_between(text: &str, begin: &str, end: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n\n{}\n\n{end}{after}", new.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, written) in [
            (0.0, "0"),
            (0.0031, "0.0031"),
            (0.954, "0.95"),
            (7.0, "7.00"),
            (70.44, "70.4"),
            (704.4, "704"),
            (999.6, "1,000"),
            (145_678.0, "146,000"),
            (2_345_678.0, "2,350,000"),
            (-1234.0, "-1,230"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(number(value), written, "{value}");
        }
    }

    #[test]
    fn bytes_have_a_unit() {
        assert_eq!(bytes(412.4), "412 B");
        assert_eq!(bytes(51_200.0), "51.2 KB");
        assert_eq!(bytes(8_410_000.0), "8.41 MB");
    }

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let table = table(&words(&["server", "rate"]), &[words(&["floor", "7"])]);
        assert_eq!(table, "| server | rate |\n|---|---:|\n| floor | 7 |\n");
        let aligned = aligned(&words(&["server", "rate"]), &[words(&["a longer name", "7"])]);
        assert_eq!(aligned, "server         rate\na longer name  7\n");
    }

    #[test]
    fn only_the_text_between_the_marks_is_replaced() {
        let replaced = replace_between("a\n<b>\nold\n<e>\nz\n", "<b>", "<e>", "new\n");
        assert_eq!(replaced.as_deref(), Some("a\n<b>\n\nnew\n\n<e>\nz\n"));
        let again = replace_between(&replaced.unwrap(), "<b>", "<e>", "new\n");
        assert_eq!(again.as_deref(), Some("a\n<b>\n\nnew\n\n<e>\nz\n"));
        assert_eq!(replace_between("a <b> z", "<b>", "<e>", "new"), None);
        assert_eq!(replace_between("a <e> <b> z", "<b>", "<e>", "new"), None);
    }
}
