//! A few values, kept in place.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// At most `N` values, in the order in which they came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Few<T, const N: usize> {
    /// Those that there are, and defaults.
    list: [T; N],
    count: u8,
}

impl<T: Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self {
            list: std::array::from_fn(|_| T::default()),
            count: 0,
        }
    }
}

impl<T, const N: usize> Few<T, N> {
    /// Adds a value; one that there is no room for is lost.
    pub fn push(&mut self, value: T) {
        if let Some(place) = self.list.get_mut(usize::from(self.count)) {
            *place = value;
            self.count += 1;
        }
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.list[..usize::from(self.count)]
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.list[..usize::from(self.count)]
    }
}

impl<T: Default, const N: usize> FromIterator<T> for Few<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut few = Self::default();
        values.into_iter().for_each(|value| few.push(value));
        few
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a Few<T, N> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Few<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_lost() {
        let few: Few<u8, 3> = (1..=5).collect();
        assert_eq!(few[..], [1, 2, 3]);
        assert_eq!(format!("{few:?}"), "[1, 2, 3]");
        assert_ne!(few, (1..=2).collect());
    }
}
