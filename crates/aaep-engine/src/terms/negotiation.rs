//! The handshake decision: a request comes in, an acceptance with its terms or a rejection goes out
//! (§5.4, §5.5, §5.7).
//!
//! What is granted is never wider than what was requested (§5.4.4), and `negotiation_notes` say
//! what was narrowed and why. Permanent reasons for a rejection are checked before temporary ones,
//! so that nobody tries again in vain. Nothing here counts subscriptions, makes ids or remembers
//! anything.

use aaep::extension::{AskCapabilities, PREFIX};
use aaep::handshake::{
    SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate, SubscriptionRequest,
};
use aaep::{
    Capabilities, EventFilters, LanguageTag, MAX_MESSAGE_BYTES, Object, Severity, SubscriptionId,
    Uri, Version, Violation,
};

use super::comparison::coarseness;
use super::rejection::{SubscriptionRefusal, listed};
use super::{Door, Offer, Terms, language};

/// The greatest rate that a message can state (§5.3.1.1).
const MAX_RATE: u64 = 100_000;

/// Answers a request (§5.2). `active` is the number of subscriptions without this one.
pub fn negotiate(
    offer: &Offer,
    door: Door,
    active: usize,
    request: &SubscriptionRequest,
    id: SubscriptionId,
) -> Result<(SubscriptionAccepted, Terms), SubscriptionRejected> {
    grant(offer, door, active, request, id).map_err(|refusal| refusal.into_message(offer))
}

/// Answers a request that could not be read (ruling 12). `version` is the version that it names, if
/// that is a string. A version that we do not speak may have other rules of form, so it is then
/// given as the reason.
pub fn reject_malformed(
    offer: &Offer,
    version: Option<&str>,
    violations: Vec<Violation>,
) -> SubscriptionRejected {
    let is_spoken = |asked: &str| {
        Version::parse(asked).is_ok_and(|asked| choose_version(&offer.versions, &asked).is_ok())
    };
    let refusal = match version.filter(|asked| !is_spoken(asked)) {
        Some(asked) => SubscriptionRefusal::Version(asked),
        None => SubscriptionRefusal::Malformed(violations),
    };
    refusal.into_message(offer)
}

/// Answers a request that is not considered because the door is closed; `None` if it is open.
pub fn reject_at(offer: &Offer, door: Door) -> Option<SubscriptionRejected> {
    check_door(door).err().map(|refusal| refusal.into_message(offer))
}

/// Answers a change of terms (§5.7, ruling 25). Only the fields that the change names are
/// negotiated again, each as a whole: a named `event_filters` replaces both filters, a named
/// extension replaces everything under its prefix. The levels that require replies come and go with
/// the ability to reply (ruling 3). All other fields keep their negotiated value, even if the offer
/// has changed.
///
/// Also returns everything that the subscriber has requested so far, which must be passed in the
/// next time. Capabilities of unknown extensions are not included, so it cannot grow without bound.
/// A rejection ends the subscription.
pub fn renegotiate(
    offer: &Offer,
    current: &Terms,
    asked_before: &Capabilities,
    change: &SubscriptionRenegotiate,
) -> Result<(SubscriptionAccepted, Terms, Capabilities), SubscriptionRejected> {
    regrant(offer, current, asked_before, change).map_err(|refusal| refusal.into_message(offer))
}

fn grant<'a>(
    offer: &'a Offer,
    door: Door,
    active: usize,
    request: &'a SubscriptionRequest,
    id: SubscriptionId,
) -> Result<(SubscriptionAccepted, Terms), SubscriptionRefusal<'a>> {
    check_door(door)?;
    // The version is checked first: another major version may have other rules of form.
    let version = choose_version(&offer.versions, &request.aaep_version)?;
    refuse_malformed(aaep::check(request))?;
    let asked = &request.capabilities;
    let mut notes = Vec::new();
    if version.cmp_release(&request.aaep_version).is_lt() {
        notes.push(format!("AAEP {version} is spoken, the newest version that is known here."));
    }
    let terms = fresh_terms(offer, version, asked, &mut notes)?;
    let accepted = accept(offer, id, &terms, asked, &notes)?;
    if active >= offer.max_concurrent_subscriptions {
        return Err(SubscriptionRefusal::Full);
    }
    Ok((accepted, terms))
}

/// The terms for a subscription that was granted before and stored, under the offer of today. `None`
/// if it is not granted any more. `active` is the number of subscriptions without this one.
pub(crate) fn restore(
    offer: &Offer,
    active: usize,
    version: &Version,
    asked: &Capabilities,
) -> Option<Terms> {
    let version = choose_version(&offer.versions, version).ok()?;
    let terms = fresh_terms(offer, version, asked, &mut Vec::new()).ok()?;
    (active < offer.max_concurrent_subscriptions).then_some(terms)
}

/// The terms for someone who requests these capabilities and has no terms yet.
fn fresh_terms<'a>(
    offer: &'a Offer,
    version: Version,
    asked: &'a Capabilities,
    notes: &mut Vec<String>,
) -> Result<Terms, SubscriptionRefusal<'a>> {
    refuse_bad_prefixes(offer, asked.supported_extensions.as_deref(), &asked.other)?;
    let fresh = Terms { version, ..Terms::defaults() };
    TermsNarrowing { offer, change: asked, everything: true, notes }.narrow(fresh)
}

fn regrant<'a>(
    offer: &'a Offer,
    current: &Terms,
    asked_before: &Capabilities,
    change: &'a SubscriptionRenegotiate,
) -> Result<(SubscriptionAccepted, Terms, Capabilities), SubscriptionRefusal<'a>> {
    refuse_malformed(aaep::check(change))?;
    let named = &change.capabilities;
    refuse_bad_prefixes(offer, named.supported_extensions.as_deref(), &named.other)?;
    let mut notes = Vec::new();
    if let Some(filters) = &named.event_filters {
        note_lost_filters(current, filters, &mut notes);
    }
    let mut current = current.clone();
    if named.supports_confirmation_reply == Some(true) {
        // Levels that were withheld only because replies were missing are granted now.
        let asked = asked_before.supported_conformance_levels.iter().flatten();
        let offered = asked.filter(|level| offer.conformance_levels.contains(level));
        current.levels.extend(offered);
        current.levels.sort_unstable();
        current.levels.dedup();
    }
    let terms = TermsNarrowing { offer, change: named, everything: false, notes: &mut notes }
        .narrow(current)?;
    let asked = merged(&terms, asked_before, named);
    let accepted = accept(offer, change.subscription_id.clone(), &terms, &asked, &notes)?;
    Ok((accepted, terms, asked))
}

fn check_door(door: Door) -> Result<(), SubscriptionRefusal<'static>> {
    match door {
        Door::Open => Ok(()),
        Door::AuthenticationRequired => Err(SubscriptionRefusal::AuthenticationRequired),
        Door::AuthorizationDenied => Err(SubscriptionRefusal::AuthorizationDenied),
        Door::TransportUnavailable => Err(SubscriptionRefusal::TransportUnavailable),
        Door::Failing => Err(SubscriptionRefusal::Failing),
    }
}

/// The version to speak (ruling 21). A pre-release is spoken only if it is exactly one of ours
/// (§12.1.1). Among the releases of the same major version, it is our newest that is not newer than
/// theirs. If all of ours are newer, it is theirs, which §12.6.2 lets every later release speak.
fn choose_version<'a>(
    ours: &[Version],
    asked: &'a Version,
) -> Result<Version, SubscriptionRefusal<'a>> {
    if ours.contains(asked) {
        return Ok(asked.clone());
    }
    let releases: Vec<&Version> = ours
        .iter()
        .filter(|version| !version.is_pre_release() && version.major() == asked.major())
        .collect();
    if asked.is_pre_release() || releases.is_empty() {
        return Err(SubscriptionRefusal::Version(asked.as_str()));
    }
    let newest = releases
        .into_iter()
        .filter(|version| version.cmp_release(asked).is_le())
        .max_by(|one, other| one.cmp_release(other));
    Ok(newest.unwrap_or(asked).clone())
}

/// Messages are read strictly before they arrive here, but their fields are public. So anything
/// that a strict reader refuses is refused here, too, and not repeated back to the subscriber.
fn refuse_malformed(violations: Vec<Violation>) -> Result<(), SubscriptionRefusal<'static>> {
    if violations.iter().any(|violation| violation.severity == Severity::Error) {
        Err(SubscriptionRefusal::Malformed(violations))
    } else {
        Ok(())
    }
}

/// Ruling 26: no capability under a reserved prefix, and no two chosen extensions under one prefix.
/// Two versions of one vocabulary are two extensions (§7.9.1). The prefix of an unknown extension
/// is not known either, so it collides with nothing.
fn refuse_bad_prefixes<'a>(
    offer: &'a Offer,
    chosen: Option<&'a [Uri]>,
    capabilities: &'a Object,
) -> Result<(), SubscriptionRefusal<'a>> {
    if let Some(key) = capabilities.keys().find(|key| is_reserved(key)) {
        return Err(SubscriptionRefusal::ReservedPrefix(key));
    }
    let known: Vec<&(Uri, _)> = chosen
        .into_iter()
        .flatten()
        .filter_map(|uri| offer.extensions.iter().find(|(known, _)| known == uri))
        .collect();
    for (index, (uri, prefix)) in known.iter().enumerate() {
        if let Some((other, _)) = known[..index].iter().find(|it| it.1 == *prefix && it.0 != *uri) {
            return Err(SubscriptionRefusal::SharedPrefix(prefix.as_str(), other, uri));
        }
    }
    Ok(())
}

/// Whether a key uses a prefix that no extension may have (§7.3.2), alone or before a colon.
fn is_reserved(key: &str) -> bool {
    let prefix = key.split_once(':').map_or(key, |(prefix, _)| prefix);
    matches!(prefix, "aaep" | "xsd" | "rdf" | "rdfs") || prefix.starts_with('@')
}

/// Narrows what was requested to what can be offered, field by field.
struct TermsNarrowing<'a, 'n> {
    offer: &'a Offer,
    /// What is requested.
    change: &'a Capabilities,
    /// Whether fields that are not named count as requested with their defaults. Otherwise they
    /// stay unchanged.
    everything: bool,
    notes: &'n mut Vec<String>,
}

impl<'a> TermsNarrowing<'a, '_> {
    /// The new terms, derived from the current ones.
    fn narrow(mut self, mut terms: Terms) -> Result<Terms, SubscriptionRefusal<'a>> {
        // Every field is named, so that a new one does not compile until it is granted here.
        let Capabilities {
            max_events_per_second,
            preferred_verbosity,
            languages,
            supports_confirmation_reply,
            supports_clarification_reply,
            coalesce_boundaries,
            event_filters,
            supported_conformance_levels,
            supported_extensions,
            cognitive_load,
            pace_wpm,
            accept_signed_manifests_only,
            // Read by `extension_capabilities` and `own_capabilities`.
            other: _,
        } = self.change;
        let everything = self.everything;
        if everything || max_events_per_second.is_some() {
            terms.max_events_per_second = self.rate(*max_events_per_second);
        }
        if everything || languages.is_some() {
            let asked = languages.as_ref().unwrap_or(&terms.languages);
            terms.languages = self.languages(asked)?;
        }
        if let Some(asked) = supported_extensions {
            terms.extensions = self.extensions(asked);
        }
        if let Some(boundaries) = coalesce_boundaries {
            terms.boundaries = boundaries.clone();
            terms.boundaries.sort_by_key(coarseness);
            terms.boundaries.dedup();
        }
        if let Some(filters) = event_filters {
            let default = Terms::defaults();
            terms.include = filters.include.clone().unwrap_or(default.include);
            terms.exclude = filters.exclude.clone().unwrap_or(default.exclude);
        }
        if *accept_signed_manifests_only == Some(true) && self.offer.signed_manifest.is_none() {
            return Err(SubscriptionRefusal::Unsigned);
        }
        keep(&mut terms.signed_only, *accept_signed_manifests_only);
        keep(&mut terms.verbosity, preferred_verbosity.clone());
        keep(&mut terms.confirmation_reply, *supports_confirmation_reply);
        keep(&mut terms.clarification_reply, *supports_clarification_reply);
        if everything || supported_conformance_levels.is_some() {
            let asked = supported_conformance_levels.as_ref().unwrap_or(&terms.levels);
            terms.levels = self.levels(asked);
        }
        self.drop_levels_of_repliers(&mut terms);
        keep(&mut terms.cognitive_load, cognitive_load.clone());
        terms.pace_wpm = pace_wpm.or(terms.pace_wpm);
        self.extension_capabilities(&mut terms.other);
        self.own_capabilities(&mut terms);
        Ok(terms)
    }

    /// The requested rate, or our ceiling if that is lower (§5.3.1.1).
    fn rate(&mut self, asked: Option<u64>) -> Option<u64> {
        let Some(ceiling) = self.offer.max_events_per_second else { return asked };
        let ceiling = ceiling.clamp(1, MAX_RATE);
        match asked {
            Some(asked) if asked <= ceiling => return Some(asked),
            Some(asked) => self.notes.push(format!(
                "At most {ceiling} events per second are sent and not {asked}: nobody gets more \
                 here."
            )),
            None => self.notes.push(format!(
                "At most {ceiling} events per second are sent: nobody gets more here."
            )),
        }
        Some(ceiling)
    }

    /// The requested languages that we can serve (ruling 22). The list may be empty if the offer
    /// allows it.
    fn languages(
        &mut self,
        asked: &[LanguageTag],
    ) -> Result<Vec<LanguageTag>, SubscriptionRefusal<'a>> {
        let can_speak = |tag: &&LanguageTag| language::best(tag, &self.offer.languages).is_some();
        let (served, missing): (Vec<_>, Vec<_>) = asked.iter().partition(can_speak);
        if served.is_empty() {
            if self.offer.only_offered_languages {
                return Err(SubscriptionRefusal::NoLanguage);
            }
            let primary =
                self.offer.languages.first().map_or("the agent's own", |tag| tag.as_str());
            self.notes.push(format!(
                "None of the languages asked for is spoken here, so the language is {primary}; \
                 languages is left out of the honored capabilities."
            ));
        } else if !missing.is_empty() {
            let missing = listed(missing.into_iter().map(LanguageTag::as_str));
            self.notes.push(format!("These languages are not spoken here: {missing}."));
        }
        Ok(served.into_iter().cloned().collect())
    }

    /// The levels that both sides have (§5.3.1.8). Having none in common is not a reason to reject:
    /// the events are the same, and other fields say which subscribers can answer.
    fn levels(&mut self, asked: &[u64]) -> Vec<u64> {
        let offers = |level: &&u64| self.offer.conformance_levels.contains(level);
        let (mut levels, missing): (Vec<u64>, Vec<u64>) = asked.iter().partition(offers);
        levels.sort_unstable();
        levels.dedup();
        if !missing.is_empty() {
            let missing: Vec<String> = missing.iter().map(u64::to_string).collect();
            let missing = listed(missing.iter().map(String::as_str));
            self.notes.push(format!("These conformance levels are not offered here: {missing}."));
        }
        levels
    }

    /// Level 2 and above means being able to reply (§9.4.2). It is not granted where no reply would
    /// be accepted.
    fn drop_levels_of_repliers(&mut self, terms: &mut Terms) {
        if terms.confirmation_reply || terms.levels.iter().all(|level| *level < 2) {
            return;
        }
        terms.levels.retain(|level| *level < 2);
        self.notes.push(
            "Conformance levels 2 and above are granted only to subscribers that can reply to confirmations.".to_owned(),
        );
    }

    /// The extensions that both sides know (§5.3.1.9).
    fn extensions(&mut self, asked: &[Uri]) -> Vec<Uri> {
        let is_ours = |uri: &&Uri| self.offer.extensions.iter().any(|(ours, _)| ours == *uri);
        let (known, unknown): (Vec<_>, Vec<_>) = asked.iter().partition(is_ours);
        if !unknown.is_empty() {
            let unknown = listed(unknown.into_iter().map(Uri::as_str));
            self.notes.push(format!("These extensions are not known here: {unknown}."));
        }
        known.into_iter().cloned().collect()
    }

    /// Copies the capabilities of extensions that we know and ignores the others (§5.3.2).
    fn extension_capabilities(&mut self, terms: &mut Object) {
        let mut ignored = Vec::new();
        for (key, data) in &self.change.other {
            if knows_prefix(self.offer, key) {
                terms.insert(key.clone(), data.clone());
            } else {
                ignored.push(key.as_str());
            }
        }
        if !ignored.is_empty() {
            let ignored = listed(ignored.into_iter());
            let note = format!("These capabilities of extensions are not known here: {ignored}.");
            self.notes.push(note);
        }
    }
}

impl TermsNarrowing<'_, '_> {
    /// For our own extension, grants only what we understand, and only where the extension is in
    /// use.
    fn own_capabilities(&mut self, terms: &mut Terms) {
        let Some(asked) = terms.other.remove(PREFIX) else { return };
        if !terms.understands_our_extension() {
            if self.change.other.contains_key(PREFIX) {
                let note =
                    format!("{PREFIX} is granted with its URI in supported_extensions only.");
                self.notes.push(note);
            }
            return;
        }
        let granted = AskCapabilities::understand(&asked);
        let data = serde_json::to_value(&granted).unwrap_or_default();
        if data != asked && self.change.other.contains_key(PREFIX) {
            self.notes.push(format!("Not all that was asked of {PREFIX} is known here."));
        }
        terms.other.insert(PREFIX.to_owned(), data);
    }
}

fn knows_prefix(offer: &Offer, key: &str) -> bool {
    offer.extensions.iter().any(|(_, prefix)| prefix.as_str() == key)
}

/// Sets a field that is granted as requested. Without a request it stays unchanged.
fn keep<T>(term: &mut T, asked: Option<T>) {
    if let Some(asked) = asked {
        *term = asked;
    }
}

/// A subscriber that names one filter may not expect the other to be reset, so a note says it.
fn note_lost_filters(current: &Terms, change: &EventFilters, notes: &mut Vec<String>) {
    let default = Terms::defaults();
    if change.include.is_none() && current.include != default.include {
        notes.push("The filters are replaced as a whole, so include is the default again.".into());
    }
    if change.exclude.is_none() && !current.exclude.is_empty() {
        notes.push("The filters are replaced as a whole, so nothing is excluded any more.".into());
    }
}

/// Everything that was requested, with the fields of a change in place of the old ones.
/// Capabilities of extensions are kept only if they were granted.
fn merged(terms: &Terms, before: &Capabilities, change: &Capabilities) -> Capabilities {
    let mut asked = before.overlaid_with(change);
    asked.other.retain(|key, _| terms.other.contains_key(key));
    asked
}

/// The acceptance. It repeats what was requested besides what we add, so it can exceed the size of
/// a message even if the request did not (§3.7). Then there is no acceptance.
fn accept(
    offer: &Offer,
    id: SubscriptionId,
    terms: &Terms,
    asked: &Capabilities,
    notes: &[String],
) -> Result<SubscriptionAccepted, SubscriptionRefusal<'static>> {
    let accepted = SubscriptionAccepted {
        subscription_id: id,
        aaep_version: terms.version.clone(),
        producer: offer.producer.clone(),
        honored_capabilities: terms.to_capabilities(asked),
        manifest_uri: offer.manifest_uri.clone(),
        signed_manifest: offer.signed_manifest.clone(),
        negotiation_notes: (!notes.is_empty()).then(|| notes.join(" ")),
        other: Object::new(),
    };
    // Everything requested so far is stored, and grows with every change that names other fields.
    let fits =
        |text: serde_json::Result<Vec<u8>>| text.is_ok_and(|it| it.len() <= MAX_MESSAGE_BYTES);
    if fits(serde_json::to_vec(&accepted)) && fits(serde_json::to_vec(asked)) {
        Ok(accepted)
    } else {
        Err(SubscriptionRefusal::TooLong)
    }
}
