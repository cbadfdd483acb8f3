//! The messages of the handshake: request, accepted, rejected, renegotiate, close (chapter 5).

use crate::capabilities::Capabilities;
use crate::envelope::{Extensions, Producer};
use crate::event::SHORT;
use crate::form::{CompactJws, ReasonName, SubscriptionId, Uri};
use crate::object::{DeclaredObject, object, values};
use crate::read::{MessageReader, between};
use crate::version::Version;
use crate::violation::Code;

object! {
    /// A subscriber asks for a subscription and says what it can take.
    SubscriptionRequest in "5.2.1", type "subscription.request", others Refused, check check_levels {
        /// The version of AAEP that the subscriber wants.
        required aaep_version: Version;
        /// The stable name of the subscriber.
        required subscriber_id: String = between(1, 256);
        /// The subscriber's name as it is told to people.
        optional subscriber_name: String = between(0, 256), in "5.2.2";
        /// The version of the subscriber.
        optional subscriber_version: String = between(0, 64), in "5.2.2";
        /// Where the subscriber's manifest can be fetched.
        optional subscriber_manifest_uri: Uri, in "5.2.2";
        /// A trace id for both sides' logs.
        optional correlation_id: String, in "5.2.2";
        /// What the subscriber can take; an empty object means all defaults.
        required capabilities: Capabilities, in "5.3";
        /// Data of extensions, each under its prefix.
        optional extensions: Extensions, in "5.2.2";
    }
}

type RequestParts = <SubscriptionRequest as DeclaredObject>::Parts;

/// Level 2 and above means being able to answer (§5.3.1.4). A contradiction is only noted: a
/// subscriber that cannot answer is better served than rejected, and never counts as able to
/// answer.
fn check_levels(parts: &RequestParts, reader: &mut MessageReader<'_>) {
    let Some(capabilities) = &parts.capabilities else { return };
    let claims =
        capabilities.supported_conformance_levels.iter().flatten().any(|level| *level >= 2);
    if claims && capabilities.supports_confirmation_reply != Some(true) {
        let problem = "Level 2 or above is claimed without being able to answer.".to_owned();
        reader.note_at(Code::CannotReply, Some("capabilities"), problem);
    }
}

object! {
    /// The producer grants a subscription, on these terms.
    SubscriptionAccepted in "5.4.1", type "subscription.accepted", others Refused {
        /// The id of the subscription. Never a credential.
        required subscription_id: SubscriptionId;
        /// The version of AAEP that the producer will speak.
        required aaep_version: Version;
        /// Who the producer is.
        required producer: Producer;
        /// The terms that the producer commits to, never wider than requested.
        required honored_capabilities: Capabilities, in "5.4.4";
        /// Where the producer's manifest can be fetched.
        optional manifest_uri: Uri, in "5.4.2";
        /// The producer's manifest, signed.
        optional signed_manifest: CompactJws, in "5.4.2";
        /// What was narrowed and why, for people.
        optional negotiation_notes: String = between(0, SHORT), in "5.4.2";
    }
}

values! {
    /// Why a subscription was not granted (§5.5.3).
    open ReasonCode {
        /// The producer does not speak that version.
        VersionUnsupported = "version_unsupported",
        /// The subscriber insists on a signed manifest and there is none.
        ManifestSignatureRequired = "manifest_signature_required",
        /// The producer can offer nothing of what was asked.
        CapabilitiesIncompatible = "capabilities_incompatible",
        /// There are too many subscriptions already.
        RateLimit = "rate_limit",
        /// Credentials are needed.
        AuthenticationRequired = "authentication_required",
        /// The credentials do not allow this.
        AuthorizationDenied = "authorization_denied",
        /// It cannot be served over this transport.
        TransportUnavailable = "transport_unavailable",
        /// The producer cannot say.
        Unknown = "unknown",
    }
}

object! {
    /// The producer does not grant a subscription, or ends one that was renegotiated.
    SubscriptionRejected in "5.5.1", type "subscription.rejected", others Refused {
        /// Why, for machines.
        required reason_code: ReasonCode, in "5.5.3";
        /// Why, for people.
        required reason_message: String = between(1, SHORT);
        /// After how many seconds it is worth trying again.
        optional retry_after_seconds: u64 = between(0, 86_400), in "5.5.2";
        /// Where a manifest says what the producer can offer.
        optional alternative_manifest_uri: Uri, in "5.5.2";
    }
}

object! {
    /// A subscriber asks for other terms. Only the fields that it names change.
    SubscriptionRenegotiate in "5.7.1", type "subscription.renegotiate", others Refused {
        /// The subscription whose terms should change.
        required subscription_id: SubscriptionId;
        /// The terms that should change.
        required capabilities: Capabilities;
        /// A trace id for both sides' logs.
        optional correlation_id: String;
        /// Data of extensions, each under its prefix.
        optional extensions: Extensions;
    }
}

object! {
    /// Either side ends a subscription.
    SubscriptionClose in "5.8.1", type "subscription.close", others Refused {
        /// The subscription that ends.
        required subscription_id: SubscriptionId;
        /// Why, for machines.
        optional reason_code: ReasonName;
        /// Why, for people.
        optional reason_message: String = between(1, SHORT);
        /// A trace id for both sides' logs.
        optional correlation_id: String;
        /// Data of extensions, each under its prefix.
        optional extensions: Extensions;
    }
}
