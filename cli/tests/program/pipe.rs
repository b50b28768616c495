//! A pipe that is full before the program starts.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a set-up that fails must fail its test on the spot")]

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use crate::stream::Stream;

/// What it is full of: nothing that the program writes begins with it.
pub(crate) const FILLER: char = '~';

/// The end that is read.
pub(crate) struct FullPipe {
    reader: OwnedFd,
    size: u64,
}

impl FullPipe {
    /// Such a pipe, and its other end for a program's stream.
    pub(crate) fn new() -> (Self, Stdio) {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        // Whole pages fill it to the last byte.
        let size = fcntl_getpipe_size(&writer).expect("a pipe has a size");
        let mut writer = File::from(writer);
        writer.write_all(&vec![FILLER as u8; size]).expect("an empty pipe takes its size");
        (Self { reader, size: size as u64 }, writer.into())
    }

    /// Whether it still holds as much as it can.
    pub(crate) fn is_full(&self) -> bool {
        ioctl_fionread(&self.reader).expect("a pipe knows what it holds") == self.size
    }

    /// Reads it from here on.
    pub(crate) fn drain(self) -> Stream {
        Stream::read(File::from(self.reader))
    }
}
