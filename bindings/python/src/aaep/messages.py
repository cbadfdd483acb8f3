"""Every message of AAEP as a type. Written by generate.py from the schemas of `aaep schema`; do not edit."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

EnvelopeContext = TypedDict('EnvelopeContext', {'@context': 'Union[Literal["https://aaep-protocol.org/context/v1"], list[str]]'}, total=False)


class EnvelopeLocalizationHints(TypedDict, total=False):
    """The language of the words in the event."""

    available_languages: list[str]
    """Other languages in which the producer could say the same."""

    calendar: str
    """The calendar for dates, such as gregorian or islamic."""

    fallback_chain: list[str]
    """The languages to try in turn for someone who cannot use the primary one."""

    primary_language: str
    """The language of the words in the event."""

    script: str
    """The script of the text, where the language leaves it open."""

    text_direction: Literal["ltr", "rtl", "auto"]
    """The direction of the text; left to right if absent."""


class EnvelopeProducerNeeded(TypedDict):
    """What `EnvelopeProducer` needs."""

    agent_id: str
    """The stable name of the agent, the same in all its versions."""


class EnvelopeProducer(EnvelopeProducerNeeded, total=False):
    """Who emits the event."""

    agent_name: str
    """The agent's name as it is told to people."""

    agent_version: str
    """The version of the agent."""

    manifest_uri: str
    """Where the agent's manifest can be fetched."""

    model: str
    """The model behind the agent."""


class Envelope(EnvelopeContext, total=False):
    """What every event carries, whatever its type (chapter 3)."""

    aaep_version: str
    """The version of AAEP that the producer follows."""

    correlation_id: str
    """A trace id that ties the event to other systems."""

    event_id: str
    """The unique id of the event."""

    extensions: dict[str, Any]
    """Data of extensions, each under its prefix."""

    localization_hints: EnvelopeLocalizationHints
    """The language of the words in the event."""

    producer: EnvelopeProducer
    """Who emits the event."""

    sequence_number: int
    """The position of the event in its session, from 0 and without gaps; on all of a session's events or on none."""

    session_id: str
    """The id of the session that the event belongs to."""

    timestamp: str
    """When the event was emitted: RFC 3339 with 3 or 6 digits of a second and an offset."""

    verbosity: Literal["terse", "normal", "detailed"]
    """How detailed the words of the event are; normal if absent."""


class AwaitingClarificationNeeded(Envelope):
    """What `AwaitingClarification` needs."""

    question: str
    """The question, clear without further context."""

    reply_token: str
    """Ties the reply to this question. Opaque, single use, no credential."""

    timeout_seconds: int
    """After how many seconds the agent goes on without an answer."""

    type: Literal["aaep:agent.awaiting.clarification", "https://aaep-protocol.org/types/agent.awaiting.clarification"]
    """Which event this is."""

    urgency: Literal["critical"]
    """A person must not miss this event."""


class AwaitingClarificationChoicesItemNeeded(TypedDict):
    """What `AwaitingClarificationChoicesItem` needs."""

    label: str
    """What the person is told."""

    value: str
    """What is sent back when this is chosen."""


class AwaitingClarificationChoicesItem(AwaitingClarificationChoicesItemNeeded, total=False):
    """Part of `AwaitingClarificationChoicesItem`."""


class AwaitingClarification(AwaitingClarificationNeeded, total=False):
    """The agent is blocked until a person answers a question. Critical (§4.4.2)."""

    accepted_response_kinds: list[Literal["freetext", "yes_no", "multiple_choice", "numeric"]]
    """The kinds of answer that the agent understands."""

    choices: list[AwaitingClarificationChoicesItem]
    """The answers to choose from; required for `multiple_choice`."""

    context: str
    """Why the agent needs to know."""

    default_response: str
    """What the agent assumes when nobody answers."""

    summary_detailed: str
    """The question, why it is asked and what depends on it."""

    summary_normal: str
    """The question in a sentence or two."""

    summary_terse: str
    """The question in a few words."""


class AwaitingConfirmationNeeded(Envelope):
    """What `AwaitingConfirmation` needs."""

    action: str
    """What will be done, in a sentence."""

    consequence: str
    """What follows from it, in a sentence."""

    default_decision: Literal["accept", "reject"]
    """What silence means. An irreversible action whose risk is not stated to be low needs reject."""

    reply_token: str
    """Ties the reply to this question. Opaque, single use, no credential."""

    timeout_seconds: int
    """After how many seconds the default decision applies."""

    type: Literal["aaep:agent.awaiting.confirmation", "https://aaep-protocol.org/types/agent.awaiting.confirmation"]
    """Which event this is."""

    urgency: Literal["critical"]
    """A person must not miss this event."""


class AwaitingConfirmation(AwaitingConfirmationNeeded, total=False):
    """The agent is blocked until a person consents to an action, or a safe default applies. Critical (§4.4.1)."""

    allowed_replies: list[str]
    """The decisions that are allowed; accept and reject if absent."""

    extra_context: dict[str, Any]
    """More about the action that may be shown to the person."""

    irreversible: bool
    """Whether the action cannot be undone."""

    reversibility: Literal["reversible", "reversible_with_effort", "irreversible"]
    """How well the action can be undone; of the two, the stricter field counts."""

    risk_level: Literal["low", "medium", "high"]
    """How much harm the action could do."""

    summary_detailed: str
    """The question with everything that is affected."""

    summary_normal: str
    """The action and its consequence in a sentence or two."""

    summary_terse: str
    """The question in a few words."""


class HandoffRequestedNeeded(Envelope):
    """What `HandoffRequested` needs."""

    reason: str
    """Why the agent cannot go on."""

    target_kind: Literal["human", "specialist_agent", "escalation_queue"]
    """Who should take over."""

    type: Literal["aaep:agent.handoff.requested", "https://aaep-protocol.org/types/agent.handoff.requested"]
    """Which event this is."""

    urgency: Literal["critical"]
    """A person must not miss this event."""


class HandoffRequested(HandoffRequestedNeeded, total=False):
    """The agent asks a person or another agent to take over. Critical (§4.4.3)."""

    packaged_context: dict[str, Any]
    """What the one who takes over needs to know."""

    summary_detailed: str
    """The handover with everything worth knowing."""

    summary_normal: str
    """The handover in a sentence."""

    summary_terse: str
    """The handover in a few words."""

    target_uri: str
    """Where exactly it should go."""

    urgency_for_handoff: Literal["low", "medium", "high"]
    """How soon someone should take over."""


class OutputStreamingNeeded(Envelope):
    """What `OutputStreaming` needs."""

    chunk: str
    """The text of this piece."""

    complete: bool
    """Whether this is the last piece of the output."""

    position: int
    """How many characters (code points) of this output came before."""

    type: Literal["aaep:agent.output.streaming", "https://aaep-protocol.org/types/agent.output.streaming"]
    """Which event this is."""


class OutputStreaming(OutputStreamingNeeded, total=False):
    """A piece of the agent's answer (§4.3.3)."""

    coalesce_hint: Literal["none", "word", "sentence", "paragraph", "completion"]
    """At what boundary the piece ends."""

    content_type: str
    """The media type of the text; text/plain if absent."""

    language: str
    """The language of this piece, where it is another than that of the event."""

    output_id: str
    """The output that the piece belongs to, where a session has several."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class ProgressUpdatedProgress(TypedDict, total=False):
    """How far the task is."""

    description: str
    """What the current step is."""

    percent: float
    """How much is done, in percent."""

    step: int
    """The step that is being done, from 1."""

    total_steps: int
    """How many steps there are."""


class ProgressUpdatedNeeded(Envelope):
    """What `ProgressUpdated` needs."""

    progress: ProgressUpdatedProgress
    """How far the task is."""

    type: Literal["aaep:agent.progress.updated", "https://aaep-protocol.org/types/agent.progress.updated"]
    """Which event this is."""


class ProgressUpdated(ProgressUpdatedNeeded, total=False):
    """A long task got further. To be used sparingly (§4.2.2)."""

    eta_ms: int
    """How long it will still take, in milliseconds."""

    summary_detailed: str
    """The progress with everything worth knowing."""

    summary_normal: str
    """The progress in a sentence."""

    summary_terse: str
    """The progress in a few words."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class SessionCancelledNeeded(Envelope):
    """What `SessionCancelled` needs."""

    cancelled_by: Literal["user", "producer", "timeout", "system"]
    """Who ended it."""

    summary_normal: str
    """Why it ended, in a sentence."""

    type: Literal["aaep:agent.session.cancelled", "https://aaep-protocol.org/types/agent.session.cancelled"]
    """Which event this is."""


class SessionCancelled(SessionCancelledNeeded, total=False):
    """A session was ended before it was done. The last event of its session (§4.1.4)."""

    cancellation_reason: str
    """The producer's own name for the reason."""

    partial_result: str
    """What had been done until then."""

    summary_detailed: str
    """The same with everything worth knowing."""

    summary_terse: str
    """The same in a few words."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class SessionCompletedNeeded(Envelope):
    """What `SessionCompleted` needs."""

    summary_normal: str
    """What was achieved, in a sentence."""

    type: Literal["aaep:agent.session.completed", "https://aaep-protocol.org/types/agent.session.completed"]
    """Which event this is."""


class SessionCompleted(SessionCompletedNeeded, total=False):
    """A session ended well. The last event of its session (§4.1.2)."""

    duration_ms: int
    """How long the session took, in milliseconds."""

    output_summary: str
    """What the final output is, in short."""

    result_uri: str
    """Where a fuller form of the result is."""

    summary_detailed: str
    """The same with everything worth knowing."""

    summary_terse: str
    """The same in a few words."""

    tool_invocations_count: int
    """How many tools were invoked."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class SessionErroredNeeded(Envelope):
    """What `SessionErrored` needs."""

    error_category: Literal["transient", "permanent", "requires_user", "unknown"]
    """What kind of error it is."""

    summary_normal: str
    """What went wrong, in a sentence."""

    type: Literal["aaep:agent.session.errored", "https://aaep-protocol.org/types/agent.session.errored"]
    """Which event this is."""

    urgency: Literal["critical"]
    """A person must not miss this event."""


class SessionErrored(SessionErroredNeeded, total=False):
    """A session ended in an error. The last event of its session, and critical (§4.1.3)."""

    error_code: str
    """The producer's own short code for the error."""

    error_uri: str
    """Where the error is explained."""

    recoverable: bool
    """Whether trying again may help."""

    remediation_hint: str
    """What the person can do about it."""

    summary_detailed: str
    """The same with the technical context."""

    summary_terse: str
    """The same in a few words."""


class SessionStartedNeeded(Envelope):
    """What `SessionStarted` needs."""

    summary_normal: str
    """What the session will do, in a sentence."""

    type: Literal["aaep:agent.session.started", "https://aaep-protocol.org/types/agent.session.started"]
    """Which event this is."""


class SessionStarted(SessionStartedNeeded, total=False):
    """A session begins. The first event of every session, exactly once (§4.1.1)."""

    expected_duration_ms: int
    """How long the session will probably take, in milliseconds."""

    request_text: str
    """The request in the person's own words."""

    requested_by: str
    """Who or what asked for the session."""

    summary_detailed: str
    """The same with everything worth knowing."""

    summary_terse: str
    """The same in a few words."""

    tools_available: list[str]
    """The names of the tools that the agent may use."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class StateChangedNeeded(Envelope):
    """What `StateChanged` needs."""

    from_state: str
    """The state that is left; the first one of a session is idle."""

    to_state: str
    """The state that is entered."""

    type: Literal["aaep:agent.state.changed", "https://aaep-protocol.org/types/agent.state.changed"]
    """Which event this is."""


class StateChanged(StateChangedNeeded, total=False):
    """The agent went from one state to another (§4.2.1)."""

    expected_duration_ms: int
    """How long the new state will probably last, in milliseconds."""

    summary_detailed: str
    """The new state and why."""

    summary_normal: str
    """The new state in a sentence."""

    summary_terse: str
    """The new state in a few words."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class ToolCompletedNeeded(Envelope):
    """What `ToolCompleted` needs."""

    status: Literal["success", "error", "timeout"]
    """How it ended."""

    tool: str
    """The name of the tool, as it was invoked."""

    type: Literal["aaep:agent.tool.completed", "https://aaep-protocol.org/types/agent.tool.completed"]
    """Which event this is."""


class ToolCompleted(ToolCompletedNeeded, total=False):
    """A tool returned, or was given up (§4.3.2)."""

    duration_ms: int
    """How long it took, in milliseconds."""

    error_message: str
    """What went wrong, for an error or a timeout."""

    summary_detailed: str
    """The result with everything worth knowing."""

    summary_normal: str
    """The result in a sentence."""

    summary_terse: str
    """The result in a few words."""

    tool_call_id: str
    """Ties the completion to its invocation."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class ToolInvokedNeeded(Envelope):
    """What `ToolInvoked` needs."""

    summary_normal: str
    """What the agent is doing with it, in a sentence."""

    tool: str
    """The name of the tool."""

    type: Literal["aaep:agent.tool.invoked", "https://aaep-protocol.org/types/agent.tool.invoked"]
    """Which event this is."""


class ToolInvoked(ToolInvokedNeeded, total=False):
    """A tool is about to run. Emitted before anything happens (§4.3.1)."""

    args_summary: str
    """The arguments in short, without secrets."""

    description: str
    """What the tool is for in general."""

    expected_duration_ms: int
    """How long the tool will probably take, in milliseconds."""

    irreversible: bool
    """Whether the action cannot be undone; such a tool needs an accepted confirmation first."""

    risk_level: Literal["low", "medium", "high"]
    """How much harm the action could do; low if absent."""

    summary_detailed: str
    """The same with the arguments."""

    summary_terse: str
    """The same in a few words."""

    tool_call_id: str
    """Ties the completion to this invocation."""

    urgency: Literal["background", "normal", "critical"]
    """How soon a person should hear of it; normal if absent."""


class AgentvoiceDeadlineNeeded(TypedDict):
    """What `AgentvoiceDeadline` needs."""

    at: str
    """The moment, by the clock of the event's own timestamp."""

    paused: bool
    """Whether the time stands still; then `at` is when it goes on at the latest, and ends."""

    reply_token: str
    """The token of the question."""


class AgentvoiceDeadline(AgentvoiceDeadlineNeeded, total=False):
    """The event tells until when a question can be answered."""


class AgentvoiceGap(TypedDict, total=False):
    """The event follows a gap in the stream."""

    after_event_id: str
    """The last event that the subscriber had."""

    missed: int
    """How many events are missing, where that is known."""


class AgentvoiceMergedNeeded(TypedDict):
    """What `AgentvoiceMerged` needs."""

    count: int
    """How many events it stands for."""

    last_event_id: str
    """The id of the last of them."""


class AgentvoiceMerged(AgentvoiceMergedNeeded, total=False):
    """The event stands for several."""


class AgentvoiceOriginal(TypedDict, total=False):
    """The ids as the agent wrote them, where they had another form."""

    event_id: str
    """What stands for `event_id`."""

    output_id: str
    """What stands for `output_id`."""

    reply_token: str
    """What stands for `reply_token`."""

    session_id: str
    """What stands for `session_id`."""

    tool_call_id: str
    """What stands for `tool_call_id`."""


class AgentvoiceResolutionNeeded(TypedDict):
    """What `AgentvoiceResolution` needs."""

    decided_by: Literal["reply", "timeout", "no_listener", "withdrawn"]
    """What decided it."""

    outcome: Literal["accept", "reject", "answered", "unanswered", "withdrawn"]
    """How it ended."""

    reply_token: str
    """The token of the question."""


class AgentvoiceResolution(AgentvoiceResolutionNeeded, total=False):
    """The event tells how a question was settled."""


class Agentvoice(TypedDict, total=False):
    """What a hub tells a subscriber about delivery itself, in extensions.agentvoice."""

    action_digest: str
    """Of an agent's confirmation or tool: which tool with which arguments it is."""

    asked_elsewhere: bool
    """Of an agent's confirmation: the agent asks the person in a window of its own as well, which decides if nobody answers here."""

    counted_to: int
    """Of a piece of text: how far the agent has counted its output with it, where that is not how far it is counted here, because its text was normalized."""

    deadline: AgentvoiceDeadline
    """The event tells until when a question can be answered."""

    gap: AgentvoiceGap
    """The event follows a gap in the stream."""

    held_back: int
    """How many events of this session were not sent before its end; the history holds them."""

    max_timeout_seconds: int
    """Of an agent's question: how long it may stay open at most, in seconds from when it was asked."""

    merged: AgentvoiceMerged
    """The event stands for several."""

    original: AgentvoiceOriginal
    """The ids as the agent wrote them, where they had another form."""

    project: str
    """Of any event of an agent: where it works, in the words of a person, such as `work/shop`."""

    publisher: str
    """Of a question: the principal that asks, as the hub knows it, such as `local` or `token:tok_1`."""

    resolution: AgentvoiceResolution
    """The event tells how a question was settled."""

    seconds_left: int
    """Of a question that is sent late or again: how many seconds are left to answer it."""

    stays_open: bool
    """Of an agent's question: it can be answered until its time is over, also if nobody listens meanwhile."""

    tool: str
    """Of an agent's confirmation: the tool that is asked for."""


class AgentvoiceAgentHelloNeeded(TypedDict):
    """What `AgentvoiceAgentHello` needs."""

    accepts: list[Literal["prompt", "cancel", "steer"]]
    """What it can be told; nothing if empty."""

    agent_id: str
    """The agent, as in the `producer` of its events."""

    type: Literal["agentvoice:agent.hello"]
    """Which message this is."""


class AgentvoiceAgentHello(AgentvoiceAgentHelloNeeded, total=False):
    """An agent says who it is and what it can be told."""


class AgentvoiceAgentPromptNeeded(TypedDict):
    """What `AgentvoiceAgentPrompt` needs."""

    subscription_id: str
    """The subscription on which the person listens."""

    text: str
    """What the person wants, in their own words."""

    type: Literal["agentvoice:agent.prompt"]
    """Which message this is."""


class AgentvoiceAgentPrompt(AgentvoiceAgentPromptNeeded, total=False):
    """A person wants an agent to begin something."""

    agent_id: str
    """The agent that is meant; the one that the hub prompts by default if absent."""


class AgentvoiceAskExtendNeeded(TypedDict):
    """What `AgentvoiceAskExtend` needs."""

    by_seconds: int
    """How many seconds more; never beyond the maximum that the agent stated."""

    reply_token: str
    """The token of the question, exactly as it came."""

    subscription_id: str
    """The subscription on which the question came."""

    type: Literal["agentvoice:ask.extend"]
    """Which message this is."""


class AgentvoiceAskExtend(AgentvoiceAskExtendNeeded, total=False):
    """A person needs more time to answer."""


class AgentvoiceAskPauseNeeded(TypedDict):
    """What `AgentvoiceAskPause` needs."""

    reply_token: str
    """The token of the question, exactly as it came."""

    subscription_id: str
    """The subscription on which the question came."""

    type: Literal["agentvoice:ask.pause"]
    """Which message this is."""


class AgentvoiceAskPause(AgentvoiceAskPauseNeeded, total=False):
    """A person wants the time to answer to stand still."""


class AgentvoiceAskPresentedNeeded(TypedDict):
    """What `AgentvoiceAskPresented` needs."""

    reply_token: str
    """The token of the question, exactly as it came."""

    subscription_id: str
    """The subscription on which the question came."""

    type: Literal["agentvoice:ask.presented"]
    """Which message this is."""


class AgentvoiceAskPresented(AgentvoiceAskPresentedNeeded, total=False):
    """A question was presented to the person."""


class AgentvoiceAskResumeNeeded(TypedDict):
    """What `AgentvoiceAskResume` needs."""

    reply_token: str
    """The token of the question, exactly as it came."""

    subscription_id: str
    """The subscription on which the question came."""

    type: Literal["agentvoice:ask.resume"]
    """Which message this is."""


class AgentvoiceAskResume(AgentvoiceAskResumeNeeded, total=False):
    """The time to answer goes on."""


class AgentvoiceAskWithdrawNeeded(TypedDict):
    """What `AgentvoiceAskWithdraw` needs."""

    reply_token: str
    """The token of the question."""

    type: Literal["agentvoice:ask.withdraw"]
    """Which message this is."""


class AgentvoiceAskWithdraw(AgentvoiceAskWithdrawNeeded, total=False):
    """An agent no longer needs an answer to its question."""


class AgentvoiceCapabilities(TypedDict, total=False):
    """What a subscriber can say of agentvoice in its capabilities, under the prefix."""

    ask_clock: Literal["asked", "presented"]
    """From when on the subscriber wants the time to answer to be counted; from asking if absent."""

    extend: bool
    """Whether the person may ask for more time or a pause; no if absent."""


class AgentvoiceSessionCancelNeeded(TypedDict):
    """What `AgentvoiceSessionCancel` needs."""

    session_id: str
    """The session that should end."""

    subscription_id: str
    """The subscription on which the person listens."""

    type: Literal["agentvoice:session.cancel"]
    """Which message this is."""


class AgentvoiceSessionCancel(AgentvoiceSessionCancelNeeded, total=False):
    """A person wants an agent to stop what it does."""

    reason: str
    """Why, for machines."""


class AgentvoiceSessionSteerNeeded(TypedDict):
    """What `AgentvoiceSessionSteer` needs."""

    session_id: str
    """The session that is meant."""

    subscription_id: str
    """The subscription on which the person listens."""

    text: str
    """What the person wants, in their own words."""

    type: Literal["agentvoice:session.steer"]
    """Which message this is."""


class AgentvoiceSessionSteer(AgentvoiceSessionSteerNeeded, total=False):
    """A person wants an agent to go on in another way."""


class ClarificationReplyNeeded(TypedDict):
    """What `ClarificationReply` needs."""

    reply_token: str
    """The token of the question, exactly as it came."""

    response: Union[str, bool, float]
    """The answer: text, true or false, or a number."""

    subscription_id: str
    """The subscription on which the reply is sent."""

    timestamp: str
    """When the person answered."""

    type: Literal["clarification.reply"]
    """Which message this is."""


class ClarificationReply(ClarificationReplyNeeded, total=False):
    """What a person answered to a question (§6.5)."""

    confidence: float
    """How sure the subscriber is that it understood the person, from 0 to 1."""

    correlation_id: str
    """A trace id."""

    decided_by: str
    """Who answered."""


class ConfirmationReplyNeeded(TypedDict):
    """What `ConfirmationReply` needs."""

    decision: Literal["accept", "reject"]
    """The decision."""

    reply_token: str
    """The token of the question, exactly as it came."""

    subscription_id: str
    """The subscription on which the reply is sent."""

    timestamp: str
    """When the person decided."""

    type: Literal["confirmation.reply"]
    """Which message this is."""


class ConfirmationReply(ConfirmationReplyNeeded, total=False):
    """What a person decided about an action (§6.3)."""

    correlation_id: str
    """A trace id."""

    decided_by: str
    """Who decided."""

    decision_rationale: str
    """Why, in the person's own words."""

    modified_action: dict[str, Any]
    """How the action should be changed; a producer that cannot do that takes it as reject."""


class SubscriptionAcceptedHonoredCapabilitiesEventFilters(TypedDict, total=False):
    """Which types of events the subscriber wants."""

    exclude: list[str]
    """Patterns of types to leave out; they count more than those to deliver."""

    include: list[str]
    """Patterns of types to deliver; all core events if absent."""


class SubscriptionAcceptedHonoredCapabilities(TypedDict, total=False):
    """The terms that the producer commits to, never wider than requested."""

    accept_signed_manifests_only: bool
    """Whether the subscriber insists on a signed manifest; no if absent."""

    coalesce_boundaries: list[Literal["none", "word", "sentence", "paragraph", "completion"]]
    """The boundaries at which streamed text should be cut; sentence and completion if absent."""

    cognitive_load: Literal["low", "medium", "high"]
    """How much the person wants to hear; medium if absent."""

    event_filters: SubscriptionAcceptedHonoredCapabilitiesEventFilters
    """Which types of events the subscriber wants."""

    languages: list[str]
    """The languages that the subscriber can announce, best first; en-US if absent."""

    max_events_per_second: int
    """The most events per second that the subscriber can take; critical ones do not count. No limit if absent."""

    pace_wpm: int
    """How many words per minute the subscriber announces."""

    preferred_verbosity: Literal["terse", "normal", "detailed"]
    """How detailed the words should be; normal if absent."""

    supported_conformance_levels: list[int]
    """The conformance levels that the subscriber implements; level 1 if absent."""

    supported_extensions: list[str]
    """The context URIs of the extensions that the subscriber understands."""

    supports_clarification_reply: bool
    """Whether the subscriber can answer clarifications; no if absent."""

    supports_confirmation_reply: bool
    """Whether the subscriber can answer confirmations; no if absent."""


class SubscriptionAcceptedProducerNeeded(TypedDict):
    """What `SubscriptionAcceptedProducer` needs."""

    agent_id: str
    """The stable name of the agent, the same in all its versions."""


class SubscriptionAcceptedProducer(SubscriptionAcceptedProducerNeeded, total=False):
    """Who the producer is."""

    agent_name: str
    """The agent's name as it is told to people."""

    agent_version: str
    """The version of the agent."""

    manifest_uri: str
    """Where the agent's manifest can be fetched."""

    model: str
    """The model behind the agent."""


class SubscriptionAcceptedNeeded(TypedDict):
    """What `SubscriptionAccepted` needs."""

    aaep_version: str
    """The version of AAEP that the producer will speak."""

    honored_capabilities: SubscriptionAcceptedHonoredCapabilities
    """The terms that the producer commits to, never wider than requested."""

    producer: SubscriptionAcceptedProducer
    """Who the producer is."""

    subscription_id: str
    """The id of the subscription. Never a credential."""

    type: Literal["subscription.accepted"]
    """Which message this is."""


class SubscriptionAccepted(SubscriptionAcceptedNeeded, total=False):
    """The producer grants a subscription (§5.4)."""

    manifest_uri: str
    """Where the producer's manifest can be fetched."""

    negotiation_notes: str
    """What was narrowed and why, for people."""

    signed_manifest: str
    """The producer's manifest, signed."""


class SubscriptionCloseNeeded(TypedDict):
    """What `SubscriptionClose` needs."""

    subscription_id: str
    """The subscription that ends."""

    type: Literal["subscription.close"]
    """Which message this is."""


class SubscriptionClose(SubscriptionCloseNeeded, total=False):
    """Either side ends a subscription (§5.8)."""

    correlation_id: str
    """A trace id for both sides' logs."""

    extensions: dict[str, Any]
    """Data of extensions, each under its prefix."""

    reason_code: str
    """Why, for machines."""

    reason_message: str
    """Why, for people."""


class SubscriptionRejectedNeeded(TypedDict):
    """What `SubscriptionRejected` needs."""

    reason_code: Literal["version_unsupported", "manifest_signature_required", "capabilities_incompatible", "rate_limit", "authentication_required", "authorization_denied", "transport_unavailable", "unknown"]
    """Why, for machines."""

    reason_message: str
    """Why, for people."""

    type: Literal["subscription.rejected"]
    """Which message this is."""


class SubscriptionRejected(SubscriptionRejectedNeeded, total=False):
    """The producer does not grant a subscription (§5.5)."""

    alternative_manifest_uri: str
    """Where a manifest says what the producer can offer."""

    retry_after_seconds: int
    """After how many seconds it is worth trying again."""


class SubscriptionRenegotiateCapabilitiesEventFilters(TypedDict, total=False):
    """Which types of events the subscriber wants."""

    exclude: list[str]
    """Patterns of types to leave out; they count more than those to deliver."""

    include: list[str]
    """Patterns of types to deliver; all core events if absent."""


class SubscriptionRenegotiateCapabilities(TypedDict, total=False):
    """The terms that should change."""

    accept_signed_manifests_only: bool
    """Whether the subscriber insists on a signed manifest; no if absent."""

    coalesce_boundaries: list[Literal["none", "word", "sentence", "paragraph", "completion"]]
    """The boundaries at which streamed text should be cut; sentence and completion if absent."""

    cognitive_load: Literal["low", "medium", "high"]
    """How much the person wants to hear; medium if absent."""

    event_filters: SubscriptionRenegotiateCapabilitiesEventFilters
    """Which types of events the subscriber wants."""

    languages: list[str]
    """The languages that the subscriber can announce, best first; en-US if absent."""

    max_events_per_second: int
    """The most events per second that the subscriber can take; critical ones do not count. No limit if absent."""

    pace_wpm: int
    """How many words per minute the subscriber announces."""

    preferred_verbosity: Literal["terse", "normal", "detailed"]
    """How detailed the words should be; normal if absent."""

    supported_conformance_levels: list[int]
    """The conformance levels that the subscriber implements; level 1 if absent."""

    supported_extensions: list[str]
    """The context URIs of the extensions that the subscriber understands."""

    supports_clarification_reply: bool
    """Whether the subscriber can answer clarifications; no if absent."""

    supports_confirmation_reply: bool
    """Whether the subscriber can answer confirmations; no if absent."""


class SubscriptionRenegotiateNeeded(TypedDict):
    """What `SubscriptionRenegotiate` needs."""

    capabilities: SubscriptionRenegotiateCapabilities
    """The terms that should change."""

    subscription_id: str
    """The subscription whose terms should change."""

    type: Literal["subscription.renegotiate"]
    """Which message this is."""


class SubscriptionRenegotiate(SubscriptionRenegotiateNeeded, total=False):
    """A subscriber asks for other terms (§5.7)."""

    correlation_id: str
    """A trace id for both sides' logs."""

    extensions: dict[str, Any]
    """Data of extensions, each under its prefix."""


class SubscriptionRequestCapabilitiesEventFilters(TypedDict, total=False):
    """Which types of events the subscriber wants."""

    exclude: list[str]
    """Patterns of types to leave out; they count more than those to deliver."""

    include: list[str]
    """Patterns of types to deliver; all core events if absent."""


class SubscriptionRequestCapabilities(TypedDict, total=False):
    """What the subscriber can take; an empty object means all defaults."""

    accept_signed_manifests_only: bool
    """Whether the subscriber insists on a signed manifest; no if absent."""

    coalesce_boundaries: list[Literal["none", "word", "sentence", "paragraph", "completion"]]
    """The boundaries at which streamed text should be cut; sentence and completion if absent."""

    cognitive_load: Literal["low", "medium", "high"]
    """How much the person wants to hear; medium if absent."""

    event_filters: SubscriptionRequestCapabilitiesEventFilters
    """Which types of events the subscriber wants."""

    languages: list[str]
    """The languages that the subscriber can announce, best first; en-US if absent."""

    max_events_per_second: int
    """The most events per second that the subscriber can take; critical ones do not count. No limit if absent."""

    pace_wpm: int
    """How many words per minute the subscriber announces."""

    preferred_verbosity: Literal["terse", "normal", "detailed"]
    """How detailed the words should be; normal if absent."""

    supported_conformance_levels: list[int]
    """The conformance levels that the subscriber implements; level 1 if absent."""

    supported_extensions: list[str]
    """The context URIs of the extensions that the subscriber understands."""

    supports_clarification_reply: bool
    """Whether the subscriber can answer clarifications; no if absent."""

    supports_confirmation_reply: bool
    """Whether the subscriber can answer confirmations; no if absent."""


class SubscriptionRequestNeeded(TypedDict):
    """What `SubscriptionRequest` needs."""

    aaep_version: str
    """The version of AAEP that the subscriber wants."""

    capabilities: SubscriptionRequestCapabilities
    """What the subscriber can take; an empty object means all defaults."""

    subscriber_id: str
    """The stable name of the subscriber."""

    type: Literal["subscription.request"]
    """Which message this is."""


class SubscriptionRequest(SubscriptionRequestNeeded, total=False):
    """A subscriber asks for a subscription (§5.2)."""

    correlation_id: str
    """A trace id for both sides' logs."""

    extensions: dict[str, Any]
    """Data of extensions, each under its prefix."""

    subscriber_manifest_uri: str
    """Where the subscriber's manifest can be fetched."""

    subscriber_name: str
    """The subscriber's name as it is told to people."""

    subscriber_version: str
    """The version of the subscriber."""


Event = Union[
    AwaitingClarification,
    AwaitingConfirmation,
    HandoffRequested,
    OutputStreaming,
    ProgressUpdated,
    SessionCancelled,
    SessionCompleted,
    SessionErrored,
    SessionStarted,
    StateChanged,
    ToolCompleted,
    ToolInvoked,
]
"""Any core event."""


__all__ = [
    "Agentvoice",
    "AgentvoiceAgentHello",
    "AgentvoiceAgentPrompt",
    "AgentvoiceAskExtend",
    "AgentvoiceAskPause",
    "AgentvoiceAskPresented",
    "AgentvoiceAskResume",
    "AgentvoiceAskWithdraw",
    "AgentvoiceCapabilities",
    "AgentvoiceDeadline",
    "AgentvoiceGap",
    "AgentvoiceMerged",
    "AgentvoiceOriginal",
    "AgentvoiceResolution",
    "AgentvoiceSessionCancel",
    "AgentvoiceSessionSteer",
    "AwaitingClarification",
    "AwaitingClarificationChoicesItem",
    "AwaitingConfirmation",
    "ClarificationReply",
    "ConfirmationReply",
    "Envelope",
    "EnvelopeLocalizationHints",
    "EnvelopeProducer",
    "Event",
    "HandoffRequested",
    "OutputStreaming",
    "ProgressUpdated",
    "ProgressUpdatedProgress",
    "SessionCancelled",
    "SessionCompleted",
    "SessionErrored",
    "SessionStarted",
    "StateChanged",
    "SubscriptionAccepted",
    "SubscriptionAcceptedHonoredCapabilities",
    "SubscriptionAcceptedHonoredCapabilitiesEventFilters",
    "SubscriptionAcceptedProducer",
    "SubscriptionClose",
    "SubscriptionRejected",
    "SubscriptionRenegotiate",
    "SubscriptionRenegotiateCapabilities",
    "SubscriptionRenegotiateCapabilitiesEventFilters",
    "SubscriptionRequest",
    "SubscriptionRequestCapabilities",
    "SubscriptionRequestCapabilitiesEventFilters",
    "ToolCompleted",
    "ToolInvoked",
]
