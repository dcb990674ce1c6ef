//! Records as rows: a flat struct, field by field.

use serde::ser::{Error as _, Impossible, SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// What stands in one column of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The columns of a record, in the order of its fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) names: Vec<Cow<'static, str>>,
    pub(crate) values: Vec<Value>,
}

impl Row {
    /// The row of a struct with named fields, or of a map with texts as keys.
    pub(crate) fn of<T: Serialize + ?Sized>(record: &T) -> Result<Self, RowError> {
        record.serialize(ToRow)
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let at = self.names.iter().position(|column| column == name)?;
        Some(&self.values[at])
    }

    fn push(
        &mut self,
        name: Cow<'static, str>,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), RowError> {
        let value = value.serialize(ToValue);
        let value = value.map_err(|error| RowError(format!("column `{name}`: {error}")))?;
        self.names.push(name);
        self.values.push(value);
        Ok(())
    }
}

/// Why a record is no row.
#[derive(Debug, PartialEq)]
pub(crate) struct RowError(pub(crate) String);

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RowError {}

impl serde::ser::Error for RowError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// The same refusal for each kind of value that a serializer is not made for.
macro_rules! refuse {
    ($error:expr; $($method:ident($($argument:ty),*);)*) => {
        $(fn $method(self, $(_: $argument),*) -> Result<Self::Ok, RowError> { Err($error) })*
    };
}

macro_rules! refuse_compounds {
    ($error:expr) => {
        type SerializeSeq = Impossible<Self::Ok, RowError>;
        type SerializeTuple = Impossible<Self::Ok, RowError>;
        type SerializeTupleStruct = Impossible<Self::Ok, RowError>;
        type SerializeTupleVariant = Impossible<Self::Ok, RowError>;
        type SerializeStructVariant = Impossible<Self::Ok, RowError>;

        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, RowError> {
            Err($error)
        }
        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, RowError> {
            Err($error)
        }
        fn serialize_tuple_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, RowError> {
            Err($error)
        }
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, RowError> {
            Err($error)
        }
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, RowError> {
            Err($error)
        }
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Self::Ok, RowError> {
            Err($error)
        }
    };
}

struct ToRow;

fn no_row() -> RowError {
    RowError("a row is a struct with named fields".to_owned())
}

impl Serializer for ToRow {
    type Ok = Row;
    type Error = RowError;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, RowError> {
        Ok(Fields::default())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields, RowError> {
        Ok(Fields::default())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Row, RowError> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Row, RowError> {
        value.serialize(self)
    }

    refuse! { no_row();
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }
    refuse_compounds!(no_row());
}

#[derive(Default)]
struct Fields {
    row: Row,
    /// The key of a map, until its value comes.
    key: Option<String>,
}

impl SerializeStruct for Fields {
    type Ok = Row;
    type Error = RowError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), RowError> {
        self.row.push(Cow::Borrowed(name), value)
    }

    fn end(self) -> Result<Row, RowError> {
        Ok(self.row)
    }
}

impl SerializeMap for Fields {
    type Ok = Row;
    type Error = RowError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), RowError> {
        let Value::Text(key) = key.serialize(ToValue)? else {
            return Err(no_row());
        };
        self.key = Some(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), RowError> {
        let key = self.key.take().ok_or_else(no_row)?;
        self.row.push(Cow::Owned(key), value)
    }

    fn end(self) -> Result<Row, RowError> {
        Ok(self.row)
    }
}

struct ToValue;

fn nested() -> RowError {
    RowError("a value with parts has no column".to_owned())
}

impl ToValue {
    fn integer<N: TryInto<i64> + fmt::Display + Copy>(value: N) -> Result<Value, RowError> {
        let too_large = || RowError::custom(format!("{value} is no 64-bit integer"));
        value.try_into().map(Value::Integer).map_err(|_| too_large())
    }
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = RowError;
    type SerializeMap = Impossible<Value, RowError>;
    type SerializeStruct = Impossible<Value, RowError>;

    fn serialize_bool(self, value: bool) -> Result<Value, RowError> {
        Ok(Value::Bool(value))
    }
    fn serialize_i8(self, value: i8) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_i16(self, value: i16) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_i32(self, value: i32) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_i64(self, value: i64) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_i128(self, value: i128) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_u8(self, value: u8) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_u16(self, value: u16) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_u32(self, value: u32) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_u64(self, value: u64) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_u128(self, value: u128) -> Result<Value, RowError> {
        Self::integer(value)
    }
    fn serialize_f32(self, value: f32) -> Result<Value, RowError> {
        Ok(Value::Real(value.into()))
    }
    fn serialize_f64(self, value: f64) -> Result<Value, RowError> {
        Ok(Value::Real(value))
    }
    fn serialize_char(self, value: char) -> Result<Value, RowError> {
        Ok(Value::Text(value.into()))
    }
    fn serialize_str(self, value: &str) -> Result<Value, RowError> {
        Ok(Value::Text(value.to_owned()))
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<Value, RowError> {
        Ok(Value::Bytes(value.to_owned()))
    }
    fn serialize_none(self) -> Result<Value, RowError> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, RowError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, RowError> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, name: &'static str) -> Result<Value, RowError> {
        self.serialize_str(name)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, RowError> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, RowError> {
        value.serialize(self)
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, RowError> {
        Err(nested())
    }
    fn serialize_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStruct, RowError> {
        Err(nested())
    }
    refuse_compounds!(nested());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Place {
        origin: &'static str,
    }

    #[derive(Serialize)]
    enum Kind {
        Late,
    }

    #[derive(Serialize)]
    struct Flight {
        #[serde(flatten)]
        place: Place,
        delay: Option<i32>,
        mean: f32,
        kind: Kind,
        on_time: bool,
    }

    #[test]
    fn a_flat_struct_is_a_row_also_where_it_is_flattened() {
        let place = Place { origin: "JFK" };
        let flight = Flight { place, delay: None, mean: 0.5, kind: Kind::Late, on_time: false };
        let row = Row::of(&flight).unwrap();
        assert_eq!(row.names, ["origin", "delay", "mean", "kind", "on_time"]);
        let text = |text: &str| Value::Text(text.to_owned());
        let real = Value::Real(0.5);
        assert_eq!(row.values, [text("JFK"), Value::Null, real, text("Late"), Value::Bool(false)]);
    }

    #[test]
    fn what_is_no_row_is_refused_with_the_name_of_the_column() {
        #[derive(Serialize)]
        struct Nested {
            place: Place,
        }
        #[derive(Serialize)]
        struct Large {
            count: u64,
        }
        let refused = |error: RowError| error.0;
        let nested = Row::of(&Nested { place: Place { origin: "" } }).map_err(refused);
        assert_eq!(nested.unwrap_err(), "column `place`: a value with parts has no column");
        let large = Row::of(&Large { count: u64::MAX }).map_err(refused);
        let reason = "column `count`: 18446744073709551615 is no 64-bit integer";
        assert_eq!(large.unwrap_err(), reason);
        assert_eq!(Row::of(&7).unwrap_err(), no_row());
        assert_eq!(Row::of(&(1, 2)).unwrap_err(), no_row());
    }
}
