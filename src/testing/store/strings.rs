//! Commands about the values of keys.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, Refusal, Reply, count, integer, lower, ok};
use super::expiry::end_of;
use super::keyspace::{Entry, Place, Value};
use super::state::Store;
use super::version::{Since, Version};

/// When a key may be set.
enum When<'a> {
    Always,
    /// `NX`
    Absent,
    /// `XX`
    Present,
    /// `IFEQ`
    Holds(&'a [u8]),
}

/// What becomes of the key's end.
enum End {
    Never,
    /// `KEEPTTL`
    Kept,
    At(Duration),
}

/// The options of `SET`.
struct Options<'a> {
    when: When<'a>,
    end: End,
    /// `GET`
    tells_former: bool,
}

const IFEQ: Since = Since { redis: Some([8, 4]), valkey: Some([8, 1]) };
/// `NX` and `GET` together.
const NX_GET: Since = Since::redis([7, 0]);

impl<'a> Options<'a> {
    fn read(call: &Call<'a>, version: Version) -> Result<Self, Refusal> {
        let mut options = Self { when: When::Always, end: End::Never, tells_former: false };
        let mut words = call.arguments().iter().skip(2);
        while let Some(word) = words.next() {
            let option = lower(word);
            let is_free = matches!(options.when, When::Always);
            let is_endless = matches!(options.end, End::Never);
            match option.as_str() {
                "nx" if is_free => options.when = When::Absent,
                "xx" if is_free => options.when = When::Present,
                "ifeq" if is_free && version.knows(IFEQ) => {
                    options.when = When::Holds(words.next().ok_or(Refusal::SYNTAX)?);
                }
                "get" => options.tells_former = true,
                "keepttl" if is_endless => options.end = End::Kept,
                unit @ ("ex" | "px" | "exat" | "pxat") if is_endless => {
                    let number = integer(words.next().ok_or(Refusal::SYNTAX)?)?;
                    let end = end_of(call.now, unit, number).filter(|_| number > 0);
                    options.end = End::At(end.ok_or_else(|| version.wrong_expiry("set"))?);
                }
                _ => return Err(Refusal::SYNTAX),
            }
        }
        let is_absent = matches!(options.when, When::Absent);
        if options.tells_former && is_absent && !version.knows(NX_GET) {
            return Err(Refusal::SYNTAX);
        }
        Ok(options)
    }
}

pub(super) fn set(store: &mut Store, call: &Call<'_>) -> Reply {
    let options = Options::read(call, store.setup.version)?;
    let place = store.place(call, call.argument(0));
    let former = store.keys.get(&place).cloned();
    let must_be_text = options.tells_former || matches!(options.when, When::Holds(_));
    let text = match former.as_ref().map(|entry| &entry.value) {
        Some(Value::Text(text)) => Some(text.clone()),
        Some(_) if must_be_text => return Err(Refusal::TYPE),
        _ => None,
    };
    let may = match options.when {
        When::Always => true,
        When::Absent => former.is_none(),
        When::Present => former.is_some(),
        When::Holds(wanted) => text.as_deref() == Some(wanted),
    };
    if may {
        let end = match options.end {
            End::Never => None,
            End::Kept => former.and_then(|entry| entry.end),
            End::At(end) => Some(end),
        };
        let value = Value::Text(Bytes::copy_from_slice(call.argument(1)));
        store.write(call, place, Entry { value, end });
    }
    Ok(match (options.tells_former, may) {
        (true, _) => text.map_or(Frame::Null, Frame::Bulk),
        (false, true) => ok(),
        (false, false) => Frame::Null,
    })
}

pub(super) fn get(store: &mut Store, call: &Call<'_>) -> Reply {
    Ok(store.text_at(&store.place(call, call.argument(0)))?.map_or(Frame::Null, Frame::Bulk))
}

pub(super) fn mget(store: &mut Store, call: &Call<'_>) -> Reply {
    // What is no text is told as if it were not there.
    let text = |key: &&[u8]| store.text_at(&store.place(call, key)).ok().flatten();
    let told = call.arguments().iter().map(|key| text(key).map_or(Frame::Null, Frame::Bulk));
    Ok(Frame::Array(told.collect()))
}

pub(super) fn strlen(store: &mut Store, call: &Call<'_>) -> Reply {
    let text = store.text_at(&store.place(call, call.argument(0)))?;
    Ok(count(text.map_or(0, |text| text.len())))
}

pub(super) fn del(store: &mut Store, call: &Call<'_>) -> Reply {
    let removed = call.arguments().iter().filter(|key| store.delete(call, key)).count();
    Ok(count(removed))
}

pub(super) fn delifeq(store: &mut Store, call: &Call<'_>) -> Reply {
    let (key, wanted) = (call.argument(0), call.argument(1));
    let text = store.text_at(&store.place(call, key))?;
    let holds = text.as_deref() == Some(wanted);
    Ok(Frame::Integer((holds && store.delete(call, key)).into()))
}

pub(super) fn exists(store: &mut Store, call: &Call<'_>) -> Reply {
    let is_there = |key: &&&[u8]| store.keys.get(&store.place(call, key)).is_some();
    Ok(count(call.arguments().iter().filter(is_there).count()))
}

pub(super) fn kind(store: &mut Store, call: &Call<'_>) -> Reply {
    let entry = store.keys.get(&store.place(call, call.argument(0)));
    let kind = entry.map_or("none", |entry| entry.value.kind());
    Ok(Frame::Simple(Bytes::from_static(kind.as_bytes())))
}

pub(super) fn incr(store: &mut Store, call: &Call<'_>) -> Reply {
    let place = store.place(call, call.argument(0));
    let former = store.text_at(&place)?.map_or(Ok(0), |text| integer(&text))?;
    let overflow = Refusal::of("ERR increment or decrement would overflow");
    let number = former.checked_add(1).ok_or(overflow)?;
    let end = store.keys.get(&place).and_then(|entry| entry.end);
    let value = Value::Text(number.to_string().into());
    store.write(call, place, Entry { value, end });
    Ok(Frame::Integer(number))
}

pub(super) fn hset(store: &mut Store, call: &Call<'_>) -> Reply {
    let pairs = call.arguments().get(1..).unwrap_or_default();
    if pairs.len() % 2 == 1 {
        return Err(Refusal::of("ERR wrong number of arguments for 'hset' command"));
    }
    let place = store.place(call, call.argument(0));
    let former = store.keys.get(&place).cloned();
    let (mut fields, end) = match former {
        None => (BTreeMap::new(), None),
        Some(Entry { value: Value::Hash(fields), end }) => (fields, end),
        Some(_) => return Err(Refusal::TYPE),
    };
    let had = fields.len();
    let text = |word: &[u8]| Bytes::copy_from_slice(word);
    fields.extend(pairs.chunks_exact(2).map(|pair| (text(pair[0]), text(pair[1]))));
    let new = fields.len() - had;
    store.write(call, place, Entry { value: Value::Hash(fields), end });
    Ok(count(new))
}

pub(super) fn rpush(store: &mut Store, call: &Call<'_>) -> Reply {
    let place = store.place(call, call.argument(0));
    let (mut items, end) = match store.keys.get(&place).cloned() {
        None => (Vec::new(), None),
        Some(Entry { value: Value::List(items), end }) => (items, end),
        Some(_) => return Err(Refusal::TYPE),
    };
    items.extend(call.arguments().iter().skip(1).map(|word| Bytes::copy_from_slice(word)));
    let length = items.len();
    store.write(call, place, Entry { value: Value::List(items), end });
    Ok(count(length))
}

impl Store {
    /// The text under a key, unless something else stands there.
    fn text_at(&self, place: &Place) -> Result<Option<Bytes>, Refusal> {
        match self.keys.get(place).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Refusal::TYPE),
        }
    }

    pub(super) fn write(&mut self, call: &Call<'_>, place: Place, entry: Entry) {
        self.invalidate(&place.1, Some(call.session));
        self.keys.put(place, entry);
        // No client sees what ends at once.
        self.expire_due(call.now);
    }

    /// Whether there was such a key.
    pub(super) fn delete(&mut self, call: &Call<'_>, key: &[u8]) -> bool {
        let place = self.place(call, key);
        let removed = self.keys.remove(&place).is_some();
        if removed {
            self.invalidate(key, Some(call.session));
        }
        removed
    }
}
