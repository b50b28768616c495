//! Where encoded bytes go: [`Output`], which is a vector or a `BytesMut`.

use bytes::BytesMut;

/// A growing buffer that encoders append to.
///
/// Sealed: it exists because no common trait has both `reserve` and `append`.
pub trait Output: sealed::Sealed {
    /// Makes room for `additional` bytes at once.
    fn reserve(&mut self, additional: usize);

    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl Output for Vec<u8> {
    #[inline]
    fn reserve(&mut self, additional: usize) {
        Self::reserve(self, additional);
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Output for BytesMut {
    #[inline]
    fn reserve(&mut self, additional: usize) {
        Self::reserve(self, additional);
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

mod sealed {
    use bytes::BytesMut;

    #[expect(unnameable_types, reason = "so that no other crate can implement `Output`")]
    pub trait Sealed {}

    impl Sealed for Vec<u8> {}
    impl Sealed for BytesMut {}
}
