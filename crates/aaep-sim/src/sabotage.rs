//! Broken hubs, one for each way to be wrong: what they do must be caught by the named invariant.
//!
//! Each is the real engine with a hand in between that changes what goes in or comes out.

mod consent;
mod context;
mod covering;
mod hands;
mod kill;
mod shares;
mod words;

use aaep_engine::{Engine, Input, Now, Output};

use crate::hub::Hub;

/// A way to be wrong.
#[derive(Debug, Clone, Copy)]
pub struct Sabotage {
    /// What it does.
    pub name: &'static str,
    /// The invariant that must catch it.
    pub caught_by: &'static str,
    /// Which hand does it.
    hand: fn() -> Box<dyn Hand>,
}

/// Changes what goes into the engine or comes out of it.
pub(crate) trait Hand {
    /// Changes an input; none keeps it from the engine.
    fn before(&mut self, _: Now, input: Input) -> Input {
        input
    }

    /// Changes the outputs.
    fn after(&mut self, now: Now, input: &Input, outputs: &mut Vec<Output>);

    /// The hub was killed and is there again.
    fn killed(&mut self) {}

    /// How much it holds, beside the engine.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Changes what is to be done first after that.
    fn restarted(&mut self, _: Now, _: &mut Vec<Output>) {}

    /// When it wants to be called, beside the engine.
    fn deadline(&self) -> Option<u64> {
        None
    }
}

/// All ways to be wrong.
pub const ALL: &[Sabotage] = &[
    sabotage("writes a frame that is no event", "valid frames", || Box::new(hands::Garble)),
    sabotage("leaves the summary out of an ask", "the words that are wanted", || {
        Box::new(words::LeaveOutSummary)
    }),
    sabotage("leaves the version out", "the words that are wanted", || {
        Box::new(words::LeaveOutVersion)
    }),
    sabotage("grants level 2 to who cannot reply", "the words that are wanted", || {
        Box::new(words::GrantLevels)
    }),
    sabotage("sends marks as characters of their own", "no text lost or repeated", || {
        Box::new(words::Decompose)
    }),
    sabotage("wants to be called in the past", "time goes on", || Box::new(hands::Rush(0))),
    sabotage("grants a higher rate than asked for", "honored within requested", || {
        Box::new(hands::Generous)
    }),
    sabotage("does far too much at once", "within bounds", || Box::new(hands::Flood)),
    sabotage("sends one event too many in a second", "no window over the rate", || {
        Box::new(hands::Haste::default())
    }),
    sabotage("sends a type that is excluded", "nothing that a filter excludes", || {
        Box::new(hands::Everyone::default())
    }),
    sabotage("sends to a full wire", "nothing onto a full wire", || {
        Box::new(hands::Push::default())
    }),
    sabotage("drops a critical frame", "critical at once", || Box::new(hands::DropCritical)),
    sabotage("holds a critical frame for a while", "critical at once", || {
        Box::new(hands::HoldCritical::default())
    }),
    sabotage("refuses others for what one has taken", "a share for each principal", || {
        Box::new(shares::RefuseOthers::default())
    }),
    sabotage("keeps every event in memory", "memory within its budget", || {
        Box::new(shares::KeepAll::default())
    }),
    sabotage("forgets the critical events of an absence", "critical events arrive", || {
        Box::new(hands::ForgetOnReturn)
    }),
    sabotage("answers the agent twice", "one outcome per ask", || Box::new(hands::AnswerTwice)),
    sabotage("lets an agent answer itself", "nobody answers themselves", || {
        Box::new(consent::OwnAnswer)
    }),
    sabotage("accepts without a reply", "no accept that nobody gave", || {
        Box::new(hands::AlwaysAccept)
    }),
    sabotage("lets a second reply count", "no accept that nobody gave", || {
        Box::new(hands::EveryReplyCounts)
    }),
    sabotage("never tells that time is over", "settled in time", || Box::new(hands::NeverSettle)),
    sabotage("sends a question to who cannot answer", "asked who can answer", || {
        Box::new(hands::AskEveryone::default())
    }),
    sabotage("waits longer than the agent allows", "within the agent's maximum", || {
        Box::new(consent::WaitLonger)
    }),
    sabotage("gives more time to anyone", "more time for who may ask", || {
        Box::new(consent::TimeForAll)
    }),
    sabotage("lets a tool run with other arguments", "only the accepted action", || {
        Box::new(consent::OtherArguments)
    }),
    sabotage("takes silence for the consent of a person", "silence is no consent", || {
        Box::new(covering::TakeSilence::default())
    }),
    sabotage("forgets in a kill that nobody answered", "silence is no consent", || {
        Box::new(covering::TakeSilence::after_kill())
    }),
    sabotage("takes one yes for a yes to anything", "only what was presented", || {
        Box::new(covering::TakeAnyYes::default())
    }),
    sabotage("lets another agent use an accept", "only what was presented", || {
        Box::new(covering::ShareAccepts::default())
    }),
    sabotage("lets an accept outlive its turn", "only what was presented", || {
        Box::new(covering::EndlessTurn::default())
    }),
    sabotage("refuses a no that the agent does not allow", "no accept that nobody gave", || {
        Box::new(covering::RefuseNo::default())
    }),
    sabotage("takes a rule for a person", "no accept that nobody gave", || {
        Box::new(covering::RuleIsPerson)
    }),
    sabotage("lets an irreversible tool pass", "no tool before its answer", || {
        Box::new(hands::ForgetAccept)
    }),
    sabotage("repeats an event after the end", "nothing after a terminal event", || {
        Box::new(hands::AfterEnd::default())
    }),
    sabotage("tells of a refused event", "refused leaves nothing", || Box::new(hands::TakeRefused)),
    sabotage("forgets its sessions when it is killed", "a running session goes on", || {
        Box::new(kill::ForgetSessions::default())
    }),
    sabotage("gives more time when it was killed", "no more time after a stop", || {
        Box::new(kill::GiveTime)
    }),
    sabotage("does not delete what is to be deleted", "nothing of a deleted session", || {
        Box::new(hands::KeepDeleted)
    }),
    sabotage("sends a frame twice", "no event twice", || Box::new(hands::Twice)),
    sabotage("sends events in the wrong order", "order is kept", || {
        Box::new(hands::Swap::default())
    }),
    sabotage("tells wrong numbers", "numbers without gaps", || {
        Box::new(hands::Misnumber::default())
    }),
    sabotage("loses the start of a session", "resume without loss", || Box::new(hands::LoseStart)),
    sabotage("loses a piece of text", "no text lost or repeated", || {
        Box::new(hands::LoseText::default())
    }),
    sabotage("repeats the last word of a piece", "no text lost or repeated", || {
        Box::new(hands::Stutter)
    }),
    sabotage("cuts text inside a word", "no text cut off a boundary", || Box::new(hands::CutWord)),
    sabotage("loses held text when a session fails", "no text lost or repeated", || {
        Box::new(context::LoseHeldText)
    }),
    sabotage("tells text in another language", "one language to a piece", || {
        Box::new(context::Translate)
    }),
    sabotage("asks before it tells what was said", "context before what is critical", || {
        Box::new(context::AskFirst)
    }),
    sabotage("holds tools for the sake of a pace", "a pace holds only text", || {
        Box::new(context::HoldTools::default())
    }),
    sabotage("lets what was held go in bursts", "held events leave one by one", || {
        Box::new(context::Burst::default())
    }),
    sabotage("waits for the slowest subscriber", "no stall is visible to others", || {
        Box::new(hands::WaitForAll::default())
    }),
];

const fn sabotage(
    name: &'static str,
    caught_by: &'static str,
    hand: fn() -> Box<dyn Hand>,
) -> Sabotage {
    Sabotage { name, caught_by, hand }
}

impl Sabotage {
    /// An engine with this hand in between.
    pub fn put_on(&self, engine: Engine) -> Box<dyn Hub> {
        Box::new(Sabotaged { engine, hand: (self.hand)() })
    }
}

/// An engine that is tampered with.
struct Sabotaged {
    engine: Engine,
    hand: Box<dyn Hand>,
}

impl Hub for Sabotaged {
    fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
        let input = self.hand.before(now, input);
        let mut outputs = self.engine.handle(now, input.clone());
        self.hand.after(now, &input, &mut outputs);
        outputs
    }

    fn deadline(&self) -> Option<u64> {
        [self.engine.deadline(), self.hand.deadline()].into_iter().flatten().min()
    }

    fn memory_bytes(&self) -> usize {
        self.engine.memory_bytes() + self.hand.memory_bytes()
    }

    fn restart(&mut self, now: Now, engine: Engine, mut outputs: Vec<Output>) -> Vec<Output> {
        self.engine = engine;
        self.hand.killed();
        self.hand.restarted(now, &mut outputs);
        outputs
    }
}
