//! Aligned text tables.

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// To the left.
    Left,
    /// To the right.
    Right,
}

/// A table: a header line and rows of as many cells.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns
            .iter()
            .map(|(name, align)| ((*name).to_owned(), *align))
            .collect();
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it does not have one cell a column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell a column");
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, columns two spaces apart and as wide as their widest cell, nothing at the
    /// end of a line.
    pub fn render(&self) -> String {
        let header: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&header).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                lines
                    .iter()
                    .map(|line| width(&line[column]))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for line in lines {
            let cells = line.iter().zip(&self.columns).zip(&widths);
            let padded: Vec<String> = cells
                .map(|((cell, (_, align)), width)| pad(cell, *width, *align))
                .collect();
            text.push_str(padded.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

fn pad(cell: &str, to: usize, align: Align) -> String {
    let space = " ".repeat(to.saturating_sub(width(cell)));
    match align {
        Align::Left => format!("{cell}{space}"),
        Align::Right => format!("{space}{cell}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters_not_bytes() {
        let mut table = Table::new(&[
            ("metric", Align::Left),
            ("change", Align::Right),
            ("note", Align::Left),
        ]);
        table.row(vec!["time".into(), "-1.0 % ±2.3".into(), String::new()]);
        table.row(vec!["longer name".into(), "+10.0 %".into(), "x".into()]);
        let expected = "\
metric            change  note
time         -1.0 % ±2.3
longer name      +10.0 %  x
";
        assert_eq!(table.render(), expected);
    }
}
