//! Writes a Parquet file of a run in the result directory, atomically and in bounded memory. Each row contains its point.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::LabError;
use crate::point::Point;

/// A Parquet file that is being written.
pub(crate) struct RowsFile {
    path: PathBuf,
    part_path: PathBuf,
    writer: SerializedFileWriter<File>,
    /// The columns that identify the run in every row: the id of its point, its transport, and the swept keys with
    /// their values as written.
    origin: Vec<(String, String)>,
    repetition: i64,
}

/// A group of rows that is being written, column by column in the order of the schema.
pub(crate) struct RowGroup<'f> {
    group: SerializedRowGroupWriter<'f, File>,
    rows: usize,
}

/// The metadata of a Parquet file: the version of its layout, and further entries.
pub(crate) type Metadata<'a> = &'a [(&'a str, String)];

impl RowsFile {
    /// Creates `<dir>/<name>.parquet`. Its rows have the columns that identify the run, and then these `columns`.
    pub(crate) fn create(
        path: PathBuf,
        point: &Point,
        repetition: u32,
        columns: &str,
        about: Metadata<'_>,
    ) -> Result<Self, LabError> {
        let dir = path.parent().unwrap_or(&path);
        fs::create_dir_all(dir).map_err(|e| LabError::file("create", dir, e))?;
        let part = path.with_extension("parquet.part");
        let file = File::create(&part).map_err(|e| LabError::file("write", &path, e))?;
        let origin = origin(point);
        let writer = writer(file, &origin, columns, about).map_err(|e| write_error(&path, e))?;
        Ok(Self { path, part_path: part, writer, origin, repetition: repetition.into() })
    }

    /// Writes a group of rows. The function `columns` writes the columns that follow those that identify the run.
    pub(crate) fn write(
        &mut self,
        rows: usize,
        columns: impl FnOnce(&mut RowGroup<'_>) -> Result<(), ParquetError>,
    ) -> Result<(), LabError> {
        let Self { path, writer, origin, repetition, .. } = self;
        let write = || {
            let mut group = RowGroup { group: writer.next_row_group()?, rows };
            for (_, value) in &*origin {
                group.same_text(value)?;
            }
            group.write_constant(*repetition)?;
            columns(&mut group)?;
            group.group.close().map(|_| ())
        };
        write().map_err(|e| write_error(path, e))
    }

    /// Completes the file and renames it to its final name.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.writer.finish().map_err(|e| write_error(&self.path, e))?;
        fs::rename(&self.part_path, &self.path).map_err(|e| LabError::file("write", &self.path, e))
    }
}

impl Drop for RowsFile {
    /// Removes the file if it was not finished.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part_path);
    }
}

impl RowGroup<'_> {
    /// Writes a column with the same number in every row.
    pub(crate) fn write_constant(&mut self, number: i64) -> Result<(), ParquetError> {
        self.column::<Int64Type>(&vec![number; self.rows], None)
    }

    fn same_text(&mut self, text: &str) -> Result<(), ParquetError> {
        self.column::<ByteArrayType>(&vec![ByteArray::from(text); self.rows], None)
    }

    /// Writes a column of texts.
    pub(crate) fn write_texts<'t>(
        &mut self,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<(), ParquetError> {
        let texts: Vec<ByteArray> = texts.map(ByteArray::from).collect();
        self.column::<ByteArrayType>(&texts, None)
    }

    /// Writes a column of texts, some of which may be absent.
    pub(crate) fn write_optional_texts(
        &mut self,
        texts: impl Iterator<Item = Option<String>>,
    ) -> Result<(), ParquetError> {
        let (present, texts) = split(texts.map(|text| text.map(|text| ByteArray::from(text.into_bytes()))));
        self.column::<ByteArrayType>(&texts, Some(&present))
    }

    /// Writes a column of numbers.
    pub(crate) fn write_numbers(&mut self, numbers: impl Iterator<Item = i64>) -> Result<(), ParquetError> {
        self.column::<Int64Type>(&numbers.collect::<Vec<_>>(), None)
    }

    /// Writes a column of numbers, some of which may be absent.
    pub(crate) fn write_optional_numbers(
        &mut self,
        numbers: impl Iterator<Item = Option<u64>>,
    ) -> Result<(), ParquetError> {
        let (present, numbers) = split(numbers.map(|number| number.map(|number| number as i64)));
        self.column::<Int64Type>(&numbers, Some(&present))
    }

    /// Writes the next column of the file.
    fn column<T: DataType>(&mut self, values: &[T::T], present: Option<&[i16]>) -> Result<(), ParquetError> {
        let mut column = self.group.next_column()?.expect("a writer for each column of the schema");
        column.typed::<T>().write_batch(values, present, None)?;
        column.close()
    }
}

/// Splits optional cells into definition levels, which say whether each cell has a value, and the values
/// themselves.
fn split<T>(cells: impl Iterator<Item = Option<T>>) -> (Vec<i16>, Vec<T>) {
    let (mut present, mut values) = (Vec::new(), Vec::new());
    for cell in cells {
        present.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    (present, values)
}

fn write_error(path: &Path, problem: ParquetError) -> LabError {
    LabError::file("write", path, std::io::Error::other(problem))
}

/// Returns the columns that identify a point. Dots in the names of keys are replaced, because in Parquet a dot
/// separates the parts of a path.
fn origin(point: &Point) -> Vec<(String, String)> {
    let named = [("point", point.id.to_string()), ("transport", point.label.clone())];
    let named = named.map(|(name, value)| (name.to_owned(), value));
    let column = |key: &str| key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    named.into_iter().chain(point.axes.iter().map(|(key, value)| (column(key), value.clone()))).collect()
}

fn writer(
    file: File,
    origin: &[(String, String)],
    columns: &str,
    about: Metadata<'_>,
) -> Result<SerializedFileWriter<File>, ParquetError> {
    let texts: String = origin.iter().map(|(name, _)| format!("required binary {name} (utf8);")).collect();
    let schema = format!("message row {{ {texts} required int64 repetition; {columns} }}");
    let says = |(key, value): (&str, String)| KeyValue::new(format!("headofline.{key}"), value);
    let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
    let about = about.iter().cloned().chain([version]).map(says).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about))
        .build();
    let schema = Arc::new(parse_message_type(&schema)?);
    SerializedFileWriter::new(file, schema, Arc::new(properties))
}
