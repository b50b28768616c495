//! Commands about sorted sets: all but those that sort by bytes, and those about several keys.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, Refusal, Reply, bulk, count, integer, lower};
use super::keyspace::{Entry, Value};
use super::score::{self, Score, Span};
use super::sorted_set::SortedSet;
use super::state::Store;
use super::version::Since;

/// `ZRANK` can tell the score, too.
const RANK_WITH_SCORE: Since = Since::redis([7, 2]);

/// The options of `ZADD`.
#[derive(Default)]
struct Options {
    /// `NX`: only what is no member yet; `XX`: only what is one.
    nx: bool,
    xx: bool,
    /// `GT`: a member's score only rises; `LT`: it only falls.
    gt: bool,
    lt: bool,
    /// `CH`: what has changed is counted, too.
    ch: bool,
    /// `INCR`: the score is added to the present one.
    incr: bool,
}

impl Options {
    /// Reads them; returns also what stands behind them.
    fn read<'a>(call: &Call<'a>) -> Result<(Self, &'a [&'a [u8]]), Refusal> {
        let (mut options, mut rest) = (Self::default(), &call.arguments()[1..]);
        while let Some((word, behind)) = rest.split_first() {
            match lower(word).as_str() {
                "nx" => options.nx = true,
                "xx" => options.xx = true,
                "gt" => options.gt = true,
                "lt" => options.lt = true,
                "ch" => options.ch = true,
                "incr" => options.incr = true,
                _ => break,
            }
            rest = behind;
        }
        let Self { nx, xx, gt, lt, incr, .. } = options;
        let wrong = match () {
            () if rest.is_empty() || rest.len() % 2 == 1 => "ERR syntax error",
            () if nx && xx => "ERR XX and NX options at the same time are not compatible",
            () if gt && lt || nx && (gt || lt) => {
                "ERR GT, LT, and/or NX options at the same time are not compatible"
            }
            () if incr && rest.len() > 2 => {
                "ERR INCR option supports a single increment-element pair"
            }
            () => return Ok((options, rest)),
        };
        Err(Refusal::of(wrong))
    }

    /// The score that a member gets which has this one; `None` if none.
    fn next(&self, former: Option<Score>, given: Score) -> Result<Option<Score>, Refusal> {
        let Some(former) = former else { return Ok((!self.xx).then_some(given)) };
        if self.nx {
            return Ok(None);
        }
        let next = match self.incr {
            true => Score::new(former.number() + given.number())
                .ok_or(Refusal::of("ERR resulting score is not a number (NaN)"))?,
            false => given,
        };
        let may = !(self.gt && next <= former || self.lt && next >= former);
        Ok(may.then_some(next))
    }
}

pub(super) fn zadd(store: &mut Store, call: &Call<'_>) -> Reply {
    let version = store.setup.version;
    let (options, pairs) = Options::read(call)?;
    let scored = pairs.chunks_exact(2).map(|pair| Ok((Score::read(pair[0], version)?, pair[1])));
    let scored = scored.collect::<Result<Vec<_>, Refusal>>()?;
    let place = store.place(call, call.argument(0));
    let (mut set, end) = match store.keys.get(&place).cloned() {
        None => (SortedSet::default(), None),
        Some(Entry { value: Value::Sorted(set), end }) => (set, end),
        Some(_) => return Err(Refusal::TYPE),
    };
    let (mut added, mut changed, mut last) = (0, 0, None);
    for (given, member) in scored {
        let former = set.score(member);
        last = options.next(former, given)?;
        let Some(next) = last.filter(|next| former != Some(*next)) else { continue };
        set.put(Bytes::copy_from_slice(member), next);
        if former.is_none() { added += 1 } else { changed += 1 }
    }
    if added + changed > 0 {
        store.write(call, place, Entry { value: Value::Sorted(set), end });
    }
    Ok(match options.incr {
        true => last.map_or(Frame::Null, |score| store.score_frame(call, score)),
        false => count(if options.ch { added + changed } else { added }),
    })
}

pub(super) fn zrem(store: &mut Store, call: &Call<'_>) -> Reply {
    let members = call.arguments()[1..].iter().map(|member| Bytes::copy_from_slice(member));
    store.remove_members(call, |_| members.collect())
}

pub(super) fn zremrangebyscore(store: &mut Store, call: &Call<'_>) -> Reply {
    let span = Span::read(call.argument(1), call.argument(2), store.setup.version)?;
    let members = |set: &SortedSet| set.within(span).map(|(_, member)| member.clone()).collect();
    store.remove_members(call, members)
}

pub(super) fn zscore(store: &mut Store, call: &Call<'_>) -> Reply {
    let score = store.sorted_at(call)?.and_then(|set| set.score(call.argument(1)));
    Ok(score.map_or(Frame::Null, |score| store.score_frame(call, score)))
}

pub(super) fn zcard(store: &mut Store, call: &Call<'_>) -> Reply {
    Ok(count(store.sorted_at(call)?.map_or(0, SortedSet::len)))
}

pub(super) fn zrank(store: &mut Store, call: &Call<'_>) -> Reply {
    if call.words.len() > 3 {
        // A node tells no score here.
        let knows = store.setup.version.knows(RANK_WITH_SCORE) && call.words.len() == 4;
        return Err(if knows { Refusal::SYNTAX } else { Refusal::arity("zrank") });
    }
    let rank = store.sorted_at(call)?.and_then(|set| set.rank(call.argument(1)));
    Ok(rank.map_or(Frame::Null, count))
}

pub(super) fn zcount(store: &mut Store, call: &Call<'_>) -> Reply {
    let span = Span::read(call.argument(1), call.argument(2), store.setup.version)?;
    Ok(count(store.sorted_at(call)?.map_or(0, |set| set.within(span).count())))
}

/// What is asked for of a sorted set.
#[derive(Default)]
struct Asked {
    by_score: bool,
    /// The last first.
    reversed: bool,
    /// How many are passed over, and how many are told: all, below zero.
    limit: Option<(i64, i64)>,
    with_scores: bool,
}

impl Asked {
    /// Reads the words behind the bounds. `is_free`: they may say in which way it is asked.
    fn read(mut self, call: &Call<'_>, is_free: bool) -> Result<Self, Refusal> {
        let mut words = call.arguments().iter().skip(3);
        while let Some(word) = words.next() {
            match lower(word).as_str() {
                "withscores" => self.with_scores = true,
                "limit" => {
                    let (skipped, most) = words.next().zip(words.next()).ok_or(Refusal::SYNTAX)?;
                    self.limit = Some((integer(skipped)?, integer(most)?));
                }
                "rev" if is_free && !self.reversed => self.reversed = true,
                "byscore" if is_free && !self.by_score => self.by_score = true,
                _ => return Err(Refusal::SYNTAX),
            }
        }
        if !self.by_score && self.limit.is_some_and(|(_, most)| most != -1) {
            return Err(Refusal::of(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        Ok(self)
    }
}

pub(super) fn zrange(store: &mut Store, call: &Call<'_>) -> Reply {
    let asked = Asked::default().read(call, true)?;
    range(store, call, &asked)
}

pub(super) fn zrevrange(store: &mut Store, call: &Call<'_>) -> Reply {
    let asked = Asked { reversed: true, ..Asked::default() }.read(call, false)?;
    range(store, call, &asked)
}

pub(super) fn zrangebyscore(store: &mut Store, call: &Call<'_>) -> Reply {
    let asked = Asked { by_score: true, ..Asked::default() }.read(call, false)?;
    range(store, call, &asked)
}

fn range(store: &mut Store, call: &Call<'_>, asked: &Asked) -> Reply {
    let [first, second] = [call.argument(1), call.argument(2)];
    let found: Vec<(Score, Bytes)> = if asked.by_score {
        let (min, max) = if asked.reversed { (second, first) } else { (first, second) };
        let span = Span::read(min, max, store.setup.version)?;
        let (skipped, most) = asked.limit.unwrap_or((0, -1));
        // Below zero, all are passed over, or all are told.
        let number = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let Some(set) = store.sorted_at(call)? else { return Ok(none()) };
        let within = directed(set.within(span), asked.reversed);
        within.skip(number(skipped)).take(number(most)).cloned().collect()
    } else {
        let (start, stop) = (integer(first)?, integer(second)?);
        let Some(set) = store.sorted_at(call)? else { return Ok(none()) };
        let places = set.places(start, stop);
        let all = directed(set.iter(), asked.reversed);
        all.skip(places.start).take(places.len()).cloned().collect()
    };
    Ok(store.listed(call, found, asked.with_scores))
}

fn none() -> Frame {
    Frame::Array(Vec::new().into())
}

fn directed<'a, T: 'a>(
    items: impl DoubleEndedIterator<Item = T> + 'a,
    reversed: bool,
) -> Box<dyn Iterator<Item = T> + 'a> {
    if reversed { Box::new(items.rev()) } else { Box::new(items) }
}

impl Store {
    /// The sorted set under a command's key, unless something else stands there.
    fn sorted_at(&self, call: &Call<'_>) -> Result<Option<&SortedSet>, Refusal> {
        match self.keys.get(&self.place(call, call.argument(0))).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Sorted(set)) => Ok(Some(set)),
            Some(_) => Err(Refusal::TYPE),
        }
    }

    /// Removes those members that `choose` chooses, and the key with the last of them; replies how
    /// many there were.
    fn remove_members(
        &mut self,
        call: &Call<'_>,
        choose: impl FnOnce(&SortedSet) -> Vec<Bytes>,
    ) -> Reply {
        let Some(mut set) = self.sorted_at(call)?.cloned() else { return Ok(Frame::Integer(0)) };
        let chosen = choose(&set);
        let place = self.place(call, call.argument(0));
        let removed = chosen.iter().filter(|member| set.remove(member)).count();
        let end = self.keys.get(&place).and_then(|entry| entry.end);
        if set.is_empty() {
            self.delete(call, call.argument(0));
        } else if removed > 0 {
            self.write(call, place, Entry { value: Value::Sorted(set), end });
        }
        Ok(count(removed))
    }

    /// A score as a reply; scripts get its text.
    fn score_frame(&self, call: &Call<'_>, score: Score) -> Frame {
        match call.line {
            Some(_) => bulk(score::text(score.number(), self.setup.version)),
            None => Frame::Double(score.number()),
        }
    }

    /// Members as a reply: with their scores in pairs, which are flat in RESP2 and for scripts.
    fn listed(&self, call: &Call<'_>, found: Vec<(Score, Bytes)>, with_scores: bool) -> Frame {
        let are_nested = call.line.is_none() && self.speaks_resp3(call.session);
        let mut items = Vec::new();
        for (score, member) in found {
            let member = Frame::Bulk(member);
            if !with_scores {
                items.push(member);
                continue;
            }
            let pair = [member, self.score_frame(call, score)];
            if are_nested {
                items.push(Frame::Array(pair.into_iter().collect()));
            } else {
                items.extend(pair);
            }
        }
        Frame::Array(items.into())
    }
}
