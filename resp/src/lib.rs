//! RESP codec.
