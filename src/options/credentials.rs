//! The login of a connection, and the callback for logins that change.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// A password, and the user it belongs to. Nothing prints it, not even `Debug`.
///
/// Made from a string it is a password alone: the user is then the one of the
/// [`NodeOptions`](crate::NodeOptions), or the server's `default`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) username: Option<String>,
    pub(crate) password: String,
}

impl Credentials {
    /// A user of the server's ACL and the user's password.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: Some(username.into()), password: password.into() }
    }
}

impl From<String> for Credentials {
    fn from(password: String) -> Self {
        Self { username: None, password }
    }
}

impl From<&str> for Credentials {
    fn from(password: &str) -> Self {
        password.to_owned().into()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(redacted)")
    }
}

/// The callback's pending answer: the login, or why there is none.
type Fetching = Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send>>;

/// The callback that is asked for the login at each connect. All clones share it.
#[derive(Clone)]
pub(crate) struct CredentialSource(Arc<dyn Fn() -> Fetching + Send + Sync>);

impl CredentialSource {
    pub(crate) fn of<C: Into<Credentials>>(ask: impl Fn() -> C + Send + Sync + 'static) -> Self {
        Self::of_async(move || std::future::ready(Ok::<Credentials, String>(ask().into())))
    }

    pub(crate) fn of_async<Ask, Answer, C, E>(ask: Ask) -> Self
    where
        Ask: Fn() -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<C, E>> + Send + 'static,
        C: Into<Credentials>,
        E: fmt::Display,
    {
        Self(Arc::new(move || {
            let answer = ask();
            Box::pin(async { answer.await.map(Into::into).map_err(|error| error.to_string()) })
        }))
    }

    /// Calls the callback. A panic in it becomes an error: it runs on the task that reads all
    /// connections, and must not end that task.
    pub(crate) async fn fetch(&self) -> Result<Credentials, String> {
        let panicked = || Err("it panicked".to_owned());
        let Ok(mut fetching) = catch_unwind(AssertUnwindSafe(|| (self.0)())) else {
            return panicked();
        };
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| fetching.as_mut().poll(cx)));
            polled.unwrap_or_else(|_| Poll::Ready(panicked()))
        })
        .await
    }
}

impl PartialEq for CredentialSource {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CredentialSource {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_source_gives_a_login_or_says_why_not() {
        let password = Credentials { username: None, password: "pw".into() };
        assert_eq!(CredentialSource::of(|| "pw").fetch().await, Ok(password.clone()));
        assert_eq!(CredentialSource::of(|| "pw".to_owned()).fetch().await, Ok(password));
        let both = CredentialSource::of_async(|| async {
            tokio::task::yield_now().await;
            Ok::<_, String>(Credentials::new("me", "pw"))
        });
        assert_eq!(both.fetch().await, Ok(Credentials::new("me", "pw")));
        let none = CredentialSource::of_async(|| async { Err::<String, _>("the vault is sealed") });
        assert_eq!(none.fetch().await.unwrap_err(), "the vault is sealed");
    }

    #[tokio::test]
    async fn a_panic_in_a_source_is_an_answer() {
        let at_once = CredentialSource::of(|| -> String { panic!("a bug of the application's") });
        assert_eq!(at_once.fetch().await.unwrap_err(), "it panicked");
        let later = CredentialSource::of_async(|| async {
            tokio::task::yield_now().await;
            if true {
                panic!("a bug of the application's");
            }
            Ok::<String, String>(String::new())
        });
        assert_eq!(later.fetch().await.unwrap_err(), "it panicked");
    }

    #[test]
    fn no_debug_shows_a_login() {
        assert_eq!(format!("{:?}", Credentials::new("me", "pw")), "Credentials(redacted)");
    }
}
