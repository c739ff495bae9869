//! Tables of typed cells.

use serde::{Deserialize, Serialize};

use super::Unit;

/// Rows of typed cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The subject of the rows.
    pub title: String,
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its heading, without the unit.
    pub name: String,
    /// The unit of its numbers.
    pub unit: Unit,
}

/// A cell of a [`Table`]. A number that is not there is a cell of its own and never a zero: the
/// text that stands for it says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A finite number.
    Number(f64),
    /// Yes or no: a target that is met, answers that are equal.
    Answer(bool),
    /// A name, or in a column of numbers why there is none: "not separable", "refused".
    Text(String),
    /// Nothing was measured.
    Missing,
}

impl Table {
    /// A table without columns.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), columns: Vec::new(), rows: Vec::new() }
    }

    /// With a further column, to the right.
    ///
    /// # Panics
    /// If there are rows already.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, unit: Unit) -> Self {
        assert!(self.rows.is_empty(), "columns come before rows");
        self.columns.push(Column { name: name.into(), unit });
        self
    }

    /// With further columns of one unit.
    #[must_use]
    pub fn columns<'a>(self, unit: Unit, names: impl IntoIterator<Item = &'a str>) -> Self {
        names.into_iter().fold(self, |table, name| table.column(name, unit))
    }

    /// Adds a row, of as many cells as there are columns: see [`cells!`](crate::cells).
    ///
    /// # Panics
    /// If there are more or fewer.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a cell a column: {}", self.title);
        for (cell, column) in cells.iter_mut().zip(&self.columns) {
            if let Cell::Number(value) = cell {
                *value = column.unit.of(*value);
            }
        }
        self.rows.push(cells);
    }
}

impl Column {
    /// Its heading with the unit.
    pub(super) fn heading(&self) -> String {
        self.unit.after(&self.name)
    }
}

impl Cell {
    /// As people read it, in a column of this unit.
    pub(super) fn show(&self, unit: Unit) -> String {
        match self {
            Self::Number(value) => unit.show(*value),
            Self::Answer(true) => "yes".into(),
            Self::Answer(false) => "no".into(),
            Self::Text(text) => text.clone(),
            Self::Missing => "–".into(),
        }
    }
}

/// The cells of a row of a [`Table`](crate::report::Table), from numbers, texts, and yes or no;
/// `None` and NaN are missing.
#[macro_export]
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { [$($crate::report::Cell::from($cell)),*] };
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        // The sum of nothing is a negative zero.
        if value.is_finite() { Self::Number(value + 0.0) } else { Self::Missing }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

impl From<bool> for Cell {
    fn from(holds: bool) -> Self {
        Self::Answer(holds)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl<Value: Into<Self>> From<Option<Value>> for Cell {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}
