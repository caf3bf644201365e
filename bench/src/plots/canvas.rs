//! Draws panels of lines and dots with logarithmic axes. Names are next to the lines; no fonts are
//! needed.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The size of a panel and of its margins.
const PANEL: (i32, i32) = (470, 350);
const TITLE: i32 = 46;
const LEFT: i32 = 58;
const RIGHT: i32 = 122;
const TOP: i32 = 34;
const BOTTOM: i32 = 56;

/// The smallest distance between two names.
const NAMES_APART: i32 = 15;

const INK: RGBColor = RGBColor(31, 41, 55);
const PALE: RGBColor = RGBColor(107, 114, 128);
const GRID: RGBColor = RGBColor(229, 231, 235);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A logarithmic axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// The quantity with its unit.
    label: String,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    /// Covers some values, rounded to decades; at least one decade.
    pub(super) fn around(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| is_drawn(*value)).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let (least, most) = if values.is_empty() { (1.0, 10.0) } else { (least, most) };
        let decade = |value: f64| value.log10().floor() as i32;
        let powers = decade(least) - 1..=decade(most) + 2;
        let decades: Vec<f64> = powers.map(|power| 10_f64.powi(power)).collect();
        let fine: Vec<f64> = decades.iter().flat_map(|at| [*at, at * 2.0, at * 5.0]).collect();
        // Further grid lines if there are few decades.
        let marks = if most / least > 50.0 { decades } else { fine };
        let mut low = marks.iter().rposition(|at| *at <= least).unwrap_or_default();
        let mut high = marks.iter().position(|at| *at >= most).unwrap_or(marks.len() - 1);
        // A smaller range would exaggerate differences.
        while marks[high] / marks[low] < 9.9 {
            if low > 0 && least / marks[low] < marks[high] / most {
                low -= 1;
            } else {
                high += 1;
            }
        }
        let ticks = marks[low..=high].to_vec();
        Self { label: label.to_owned(), low: marks[low], high: marks[high], ticks }
    }

    /// Has a tick at each measured value.
    pub(super) fn at(label: &str, places: &[f64]) -> Self {
        let low = places.first().copied().unwrap_or(1.0);
        let high = places.last().copied().filter(|high| *high > low).unwrap_or(low * 10.0);
        Self { label: label.to_owned(), low, high, ticks: places.to_vec() }
    }

    /// The position of a value on the axis, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }
}

fn is_drawn(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// A line with a dot at each value.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The name at its right end.
    pub(super) name: String,
    /// Its color.
    pub(super) color: RGBColor,
    /// Whether it is emphasized.
    pub(super) bold: bool,
    /// From left to right.
    pub(super) points: Vec<(f64, f64)>,
}

/// Two values in a row, connected.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The name on the left.
    pub(super) name: String,
    /// Its color.
    pub(super) color: RGBColor,
    /// A filled dot and a ring.
    pub(super) values: (f64, f64),
}

/// The content of a panel.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    /// Lines over two axes.
    Lines(Axis, Vec<Line>),
    /// Rows over one axis.
    Rows(Vec<Row>),
}

/// A plot with its title.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// The title above it.
    pub(super) title: String,
    /// The axis below it.
    pub(super) x: Axis,
    /// The content.
    pub(super) shown: Shown,
}

/// Draws panels in columns, as SVG.
pub(super) fn draw(title: &str, panels: &[Panel], columns: usize) -> Result<String, String> {
    let columns = columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns).max(1);
    let size = (PANEL.0 as u32 * columns as u32, PANEL.1 as u32 * rows as u32 + TITLE as u32);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = root.fill(&WHITE).map_err(|error| error.to_string()).and_then(|()| {
            write(&root, title, (LEFT / 2, TITLE / 2 + 2), 18, INK, HPos::Left)?;
            for (at, panel) in panels.iter().enumerate() {
                let (column, row) = ((at % columns) as i32, (at / columns) as i32);
                draw_panel(&root, panel, (column * PANEL.0, TITLE + row * PANEL.1))?;
            }
            root.present().map_err(|error| error.to_string())
        });
        drawn?;
    }
    Ok(svg)
}

/// Converts values to pixels.
struct Plot {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl Plot {
    fn x(&self, axis: &Axis, value: f64) -> i32 {
        self.left + (axis.share(value) * f64::from(self.right - self.left)).round() as i32
    }

    fn y(&self, axis: &Axis, value: f64) -> i32 {
        self.bottom - (axis.share(value) * f64::from(self.bottom - self.top)).round() as i32
    }
}

fn draw_panel(root: &Area<'_>, panel: &Panel, (x, y): (i32, i32)) -> Result<(), String> {
    // Rows have their names on the left, lines on the right.
    let (left, right) = match panel.shown {
        Shown::Lines(..) => (LEFT, RIGHT),
        Shown::Rows(_) => (RIGHT, 30),
    };
    let plot = Plot {
        left: x + left,
        right: x + PANEL.0 - right,
        top: y + TOP,
        bottom: y + PANEL.1 - BOTTOM,
    };
    let title = match &panel.shown {
        Shown::Lines(y, _) => format!("{}, {}", panel.title, y.label),
        Shown::Rows(_) => panel.title.clone(),
    };
    write(root, &title, (x + LEFT / 2, y + TOP / 2 - 3), 15, INK, HPos::Left)?;
    for tick in &panel.x.ticks {
        let at = plot.x(&panel.x, *tick);
        stroke(root, &[(at, plot.top), (at, plot.bottom)], GRID.stroke_width(1))?;
        write(root, &short(*tick), (at, plot.bottom + 14), 12, PALE, HPos::Center)?;
    }
    let middle = i32::midpoint(plot.left, plot.right);
    write(root, &panel.x.label, (middle, plot.bottom + 36), 13, INK, HPos::Center)?;
    match &panel.shown {
        Shown::Lines(y, lines) => draw_lines(root, &plot, (&panel.x, y), lines),
        Shown::Rows(rows) => draw_rows(root, &plot, &panel.x, rows),
    }
}

fn draw_lines(
    root: &Area<'_>,
    plot: &Plot,
    (x, y): (&Axis, &Axis),
    lines: &[Line],
) -> Result<(), String> {
    for tick in &y.ticks {
        let at = plot.y(y, *tick);
        stroke(root, &[(plot.left, at), (plot.right, at)], GRID.stroke_width(1))?;
        write(root, &short(*tick), (plot.left - 8, at), 12, PALE, HPos::Right)?;
    }
    let mut names = Vec::new();
    for line in lines {
        let points = line.points.iter().filter(|(at, value)| is_drawn(*at) && is_drawn(*value));
        let points: Vec<(i32, i32)> =
            points.map(|(at, value)| (plot.x(x, *at), plot.y(y, *value))).collect();
        let Some(last) = points.last() else { continue };
        names.push((last.1, last.0, line));
        let width = if line.bold { 3 } else { 2 };
        stroke(root, &points, line.color.stroke_width(width))?;
        for point in points {
            let dot = Circle::new(point, width + 1, line.color.filled());
            root.draw(&dot).map_err(|error| error.to_string())?;
        }
    }
    names.sort_unstable_by_key(|(height, ..)| *height);
    let mut heights: Vec<i32> = names.iter().map(|(height, ..)| *height).collect();
    push_apart(&mut heights, plot.bottom);
    for ((_, right, line), height) in names.iter().zip(heights) {
        // The name of a line that ends early is next to its end, the others are next to the plot.
        write(root, &line.name, (right + 10, height), 13, line.color, HPos::Left)?;
    }
    Ok(())
}

fn draw_rows(root: &Area<'_>, plot: &Plot, x: &Axis, rows: &[Row]) -> Result<(), String> {
    let step = (plot.bottom - plot.top) / i32::try_from(rows.len().max(1)).unwrap_or(1);
    let mut height = plot.top + step / 2;
    for row in rows {
        write(root, &row.name, (plot.left - 12, height), 13, row.color, HPos::Right)?;
        if is_drawn(row.values.0) && is_drawn(row.values.1) {
            let ends = (plot.x(x, row.values.0), plot.x(x, row.values.1));
            stroke(root, &[(ends.0, height), (ends.1, height)], row.color.stroke_width(2))?;
            let dot = Circle::new((ends.0, height), 5, row.color.filled());
            root.draw(&dot).map_err(|error| error.to_string())?;
            let inside = Circle::new((ends.1, height), 5, WHITE.filled());
            root.draw(&inside).map_err(|error| error.to_string())?;
            let ring = Circle::new((ends.1, height), 5, row.color.stroke_width(2));
            root.draw(&ring).map_err(|error| error.to_string())?;
        }
        height += step;
    }
    Ok(())
}

/// Moves overlapping names, first down, then up from the bottom.
fn push_apart(heights: &mut [i32], bottom: i32) {
    for at in 1..heights.len() {
        heights[at] = heights[at].max(heights[at - 1] + NAMES_APART);
    }
    let mut limit = bottom + NAMES_APART / 2;
    for height in heights.iter_mut().rev() {
        *height = (*height).min(limit);
        limit = *height - NAMES_APART;
    }
}

fn stroke(root: &Area<'_>, points: &[(i32, i32)], style: ShapeStyle) -> Result<(), String> {
    root.draw(&PathElement::new(points.to_vec(), style)).map_err(|error| error.to_string())
}

fn write(
    root: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: i32,
    color: RGBColor,
    side: HPos,
) -> Result<(), String> {
    // The size is the height of a line for the library, not of the letters.
    let size = f64::from(size) * 1.24;
    let style = ("sans-serif", size).into_font().color(&color).pos(Pos::new(side, VPos::Center));
    root.draw(&Text::new(text.to_owned(), at, style)).map_err(|error| error.to_string())
}

/// A short label for a tick.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 999_500.0 => (v / 1e6, "M"),
        v if v >= 999.5 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = format!("{value:.3}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_reaches_around_its_values() {
        let wide = Axis::around("us", [3.0, 4_000.0, 0.0, f64::NAN].into_iter());
        assert_eq!((wide.low, wide.high), (1.0, 10_000.0));
        assert_eq!(wide.ticks, [1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
        let narrow = Axis::around("us", [6.0, 30.0].into_iter());
        assert_eq!((narrow.low, narrow.high), (5.0, 50.0));
        assert_eq!(narrow.ticks, [5.0, 10.0, 20.0, 50.0]);
        for lonely in [0.03, 1.0, 9.99, 10.0, 26.0, 1e6] {
            let axis = Axis::around("us", [lonely].into_iter());
            assert!(axis.low <= lonely && lonely <= axis.high, "{axis:?}");
            assert!(axis.high / axis.low > 9.9, "{axis:?}");
        }
        assert!(Axis::around("us", [].into_iter()).ticks.len() > 1);
    }

    #[test]
    fn names_do_not_overlap_and_stay_inside() {
        let mut heights = [10, 11, 12, 100];
        push_apart(&mut heights, 200);
        assert_eq!(heights, [10, 25, 40, 100]);
        let mut heights = [198, 199, 200];
        push_apart(&mut heights, 200);
        assert_eq!(heights, [177, 192, 207]);
    }

    #[test]
    fn ticks_are_short() {
        let written: Vec<String> =
            [0.001, 0.5, 1.0, 64.0, 1_000.0, 200_000.0, 1e6].into_iter().map(short).collect();
        assert_eq!(written, ["0.001", "0.5", "1", "64", "1k", "200k", "1M"]);
    }
}
