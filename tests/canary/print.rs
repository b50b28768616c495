//! Printing what the library hands out.

use std::fmt::Debug;
use std::sync::Arc;

use quorlock::{Error, Event, LockerBuilder, Observer};

/// Prints a value as `Type: value`.
pub(crate) fn show<T: Debug>(value: T) -> T {
    let path = std::any::type_name::<T>().trim_start_matches(['&', ' ']);
    let path = path.split('<').next().unwrap_or_default();
    let name = path.rsplit("::").next().unwrap_or_default();
    println!("\n{name}: {value:?}\n{name}: {value:#?}");
    value
}

/// Prints a value, and is done with it.
pub(crate) fn look<T: Debug>(value: T) {
    drop(show(value));
}

/// Prints an error in all its forms, and what is in it.
pub(crate) fn show_error(error: &Error) {
    println!("\nError: {error:?}\nError: {error}\nError: {error:#?}");
    println!("ErrorKind: {:?}", error.kind());
    for report in error.nodes() {
        println!("{report}");
        look(report);
        look(&report.outcome);
        if let quorlock::report::Outcome::Down { fault, .. } = &report.outcome {
            println!("{fault}");
            look(fault);
        }
    }
    if let Some(holder) = error.holder() {
        println!("{holder}");
        look(holder);
    }
    if let Some(loss) = error.loss() {
        look(loss);
    }
}

/// Prints the error that this must be.
#[track_caller]
pub(crate) fn fails<T>(result: Result<T, Error>) {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => show_error(&error),
    }
}

/// Prints each event.
struct Printer;

impl Observer for Printer {
    fn on_event(&self, event: &Event<'_>) {
        println!("event: {event:?}\nEvent: {event:#?}");
    }
}

/// With everybody who tells of what happens.
pub(crate) fn observed(builder: LockerBuilder) -> LockerBuilder {
    let builder = show(builder.observer(Arc::new(Printer)));
    #[cfg(feature = "tracing")]
    let builder = builder.observer(Arc::new(quorlock::TracingObserver));
    builder
}

/// Prints what is logged.
#[cfg(feature = "tracing")]
pub(crate) fn log() {
    look(quorlock::TracingObserver);
    tracing::subscriber::set_global_default(log::Printer).unwrap();
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn log() {}

#[cfg(feature = "tracing")]
mod log {
    use std::fmt::Debug;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    pub(super) struct Printer;

    struct Fields(String);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.push_str(&format!(" {}={value:?}", field.name()));
        }
    }

    impl Subscriber for Printer {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut fields = Fields(String::new());
            span.record(&mut fields);
            println!("span:{}", fields.0);
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, record: &Record<'_>) {
            let mut fields = Fields(String::new());
            record.record(&mut fields);
            println!("record:{}", fields.0);
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut fields = Fields(String::new());
            event.record(&mut fields);
            println!("log:{}", fields.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }
}
