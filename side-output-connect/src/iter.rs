use side_output_core::checkpoint::{BoxError, JobSource, Read};
use std::fmt;

/// The items of anything that can be cloned and gone through again: a range, a `Vec`.
///
/// A position is how many items came before; after a restart they are gone through and left out.
///
/// # Examples
///
/// ```
/// use side_output::checkpoint::{JobSource as _, Read};
/// use side_output::connect::iter;
///
/// # futures::executor::block_on(async {
/// let mut source = iter(["a", "b", "c"]);
/// source.open(None).await?;
/// source.read(&mut Vec::new(), 2).await?;
///
/// let mut source_again = iter(["a", "b", "c"]);
/// source_again.open(Some(&source.position())).await?;
/// let mut rest = Vec::new();
/// while source_again.read(&mut rest, 2).await? == Read::More {}
/// assert_eq!(rest, ["c"]);
/// # Ok::<_, side_output::checkpoint::BoxError>(())
/// # }).unwrap();
/// ```
pub const fn iter<I: IntoIterator + Clone>(items: I) -> Iter<I> {
    Iter { items, rest: None, before: 0 }
}

/// A source of items that can be gone through again; made by [`iter()`].
pub struct Iter<I: IntoIterator> {
    items: I,
    /// Those that are left, once it is open.
    rest: Option<I::IntoIter>,
    /// How many have been read.
    before: u64,
}

impl<I: IntoIterator> fmt::Debug for Iter<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("before", &self.before).finish_non_exhaustive()
    }
}

impl<I> JobSource for Iter<I>
where
    I: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + Clone + Send + 'static,
{
    type Item = I::Item;

    async fn open(&mut self, position: Option<&[u8]>) -> Result<(), BoxError> {
        self.before = match position {
            Some(position) => u64::from_le_bytes(position.try_into()?),
            None => 0,
        };
        let mut rest = self.items.clone().into_iter();
        for _ in 0..self.before {
            if rest.next().is_none() {
                return Err(format!("{} items were read before, and are gone", self.before).into());
            }
        }
        self.rest = Some(rest);
        Ok(())
    }

    async fn read(&mut self, into: &mut Vec<I::Item>, most: usize) -> Result<Read, BoxError> {
        let rest = self.rest.as_mut().ok_or("the source is not open")?;
        let before = into.len();
        into.extend(rest.by_ref().take(most));
        self.before += (into.len() - before) as u64;
        Ok(if into.len() > before { Read::More } else { Read::End })
    }

    fn position(&self) -> Vec<u8> {
        self.before.to_le_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn from_every_position_the_rest_is_the_same_and_fewer_items_are_an_error() {
        for before in 0..=4_u64 {
            let mut source = iter(0..4);
            block_on(source.open(Some(&before.to_le_bytes()))).unwrap();
            let mut rest = Vec::new();
            while block_on(source.read(&mut rest, 3)).unwrap() == Read::More {}
            assert_eq!(rest, (before..4).collect::<Vec<_>>());
            assert_eq!(source.position(), 4_u64.to_le_bytes());
        }
        block_on(iter(0..4).open(Some(&5_u64.to_le_bytes()))).unwrap_err();
        block_on(iter(0..4).open(Some(&[1]))).unwrap_err();
    }
}
