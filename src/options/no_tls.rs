//! Stand-ins for the TLS types in a build without TLS. They have no values, so the code that passes
//! them on is the same in every build and costs nothing in this one.

use crate::error::Error;

#[derive(Clone, Debug)]
pub(crate) enum Tls {}

#[derive(Clone, Debug)]
pub(crate) enum Security {}

impl Security {
    pub(crate) fn of(_: Option<&Tls>) -> Result<Self, Error> {
        Err(Error::misuse("TLS needs quorlock's feature `tls-rustls`; build with it"))
    }

    pub(crate) fn check(&self, _: &str) -> Result<(), Error> {
        match *self {}
    }
}
