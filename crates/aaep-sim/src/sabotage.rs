//! Broken hubs, one for each kind of fault, each of which the named invariant must catch.
//!
//! Each is the real engine with a saboteur that changes its inputs or outputs.

mod consent;
mod context;
mod covering;
mod hands;
mod kill;
mod shares;
mod time;
mod words;

use aaep_engine::{Engine, EngineInput, Now, Output};

use crate::hub::WorldHub;

/// One kind of fault, and the invariant for it.
#[derive(Debug, Clone, Copy)]
pub struct SabotageCase {
    /// What the broken hub does.
    pub name: &'static str,
    /// The name of the invariant that must catch it.
    pub caught_by: &'static str,
    /// Makes the saboteur.
    saboteur: fn() -> Box<dyn EngineSaboteur>,
}

/// Changes the inputs or the outputs of an engine.
pub(crate) trait EngineSaboteur {
    /// Changes an input before the engine handles it.
    fn before(&mut self, _: Now, input: EngineInput) -> EngineInput {
        input
    }

    /// Changes the outputs.
    fn after(&mut self, now: Now, input: &EngineInput, outputs: &mut Vec<Output>);

    /// Notes that the hub was killed and started again.
    fn killed(&mut self) {}

    /// The bytes that it holds in addition to the engine.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Changes the outputs of the recovery.
    fn restarted(&mut self, _: Now, _: &mut Vec<Output>) {}

    /// When it wants a tick of its own.
    fn deadline(&self) -> Option<u64> {
        None
    }
}

/// All kinds of faults.
pub const ALL: &[SabotageCase] = &[
    sabotage("writes a frame that is not an event", "valid frames", || {
        Box::new(hands::GarbleFrame)
    }),
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
        Box::new(words::DecomposeMarks)
    }),
    sabotage("wants to be called in the past", "time goes on", || Box::new(hands::RushDeadline(0))),
    sabotage("dates what it merges before what it sent", "timestamps never go back", || {
        Box::new(time::DateBack)
    }),
    sabotage("dates its notices after now", "timestamps never go back", || {
        Box::new(time::DateAhead)
    }),
    sabotage("grants a higher rate than asked for", "honored within requested", || {
        Box::new(hands::GrantMore)
    }),
    sabotage("does far too much at once", "within bounds", || Box::new(hands::FloodOutputs)),
    sabotage("sends one event too many in a second", "no window over the rate", || {
        Box::new(hands::ExceedRate::default())
    }),
    sabotage("sends a type that is excluded", "nothing that a filter excludes", || {
        Box::new(hands::SendToEveryone::default())
    }),
    sabotage("sends to a full wire", "nothing onto a full wire", || {
        Box::new(hands::PushToFullWire::default())
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
    sabotage("takes silence for the consent of a person", "silence is not consent", || {
        Box::new(covering::TakeSilence::default())
    }),
    sabotage("forgets in a kill that nobody answered", "silence is not consent", || {
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
    sabotage("sends a frame twice", "no event twice", || Box::new(hands::SendTwice)),
    sabotage("sends events in the wrong order", "order is kept", || {
        Box::new(hands::SwapOrder::default())
    }),
    sabotage("tells wrong numbers", "numbers without gaps", || {
        Box::new(hands::MisnumberEvents::default())
    }),
    sabotage("loses the start of a session", "resume without loss", || Box::new(hands::LoseStart)),
    sabotage("loses a piece of text", "no text lost or repeated", || {
        Box::new(hands::LoseText::default())
    }),
    sabotage("repeats the last word of a piece", "no text lost or repeated", || {
        Box::new(hands::StutterText)
    }),
    sabotage("cuts text inside a word", "no text cut off a boundary", || Box::new(hands::CutWord)),
    sabotage("loses held text when a session fails", "no text lost or repeated", || {
        Box::new(context::LoseHeldText)
    }),
    sabotage("tells text in another language", "one language to a piece", || {
        Box::new(context::TranslateText)
    }),
    sabotage("asks before it tells what was said", "context before what is critical", || {
        Box::new(context::AskFirst)
    }),
    sabotage("holds tools for the sake of a pace", "a pace holds only text", || {
        Box::new(context::HoldTools::default())
    }),
    sabotage("lets what was held go in bursts", "held events leave one by one", || {
        Box::new(context::SendBursts::default())
    }),
    sabotage("waits for the slowest subscriber", "no stall is visible to others", || {
        Box::new(hands::WaitForAll::default())
    }),
];

const fn sabotage(
    name: &'static str,
    caught_by: &'static str,
    saboteur: fn() -> Box<dyn EngineSaboteur>,
) -> SabotageCase {
    SabotageCase { name, caught_by, saboteur }
}

impl SabotageCase {
    /// Wraps an engine with this saboteur.
    pub fn put_on(&self, engine: Engine) -> Box<dyn WorldHub> {
        Box::new(SabotagedEngine { engine, saboteur: (self.saboteur)() })
    }
}

/// An engine with a saboteur around it.
struct SabotagedEngine {
    engine: Engine,
    saboteur: Box<dyn EngineSaboteur>,
}

impl WorldHub for SabotagedEngine {
    fn handle(&mut self, now: Now, input: EngineInput) -> Vec<Output> {
        let input = self.saboteur.before(now, input);
        let mut outputs = self.engine.handle(now, input.clone());
        self.saboteur.after(now, &input, &mut outputs);
        outputs
    }

    fn deadline(&self) -> Option<u64> {
        [self.engine.deadline(), self.saboteur.deadline()].into_iter().flatten().min()
    }

    fn memory_bytes(&self) -> usize {
        self.engine.memory_bytes() + self.saboteur.memory_bytes()
    }

    fn restart(&mut self, now: Now, engine: Engine, mut outputs: Vec<Output>) -> Vec<Output> {
        self.engine = engine;
        self.saboteur.killed();
        self.saboteur.restarted(now, &mut outputs);
        outputs
    }
}
