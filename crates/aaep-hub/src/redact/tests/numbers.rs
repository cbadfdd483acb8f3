//! Personal numbers that must be redacted, numbers that must stay, and asks, which are delivered whole.
//!
//! Cards and accounts are those that payment networks and banks publish for tests.

use super::*;

#[test]
fn card_numbers_are_known_by_issuer_and_check_digit() {
    let redactor = redactor();
    for card in [
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111.1111.1111.1111",
        "4111\u{a0}1111\u{a0}1111\u{a0}1111",
        "4111\u{2013}1111\u{2013}1111\u{2013}1111",
        "4111\u{2010}1111\u{2010}1111\u{2010}1111",
        "5555555555554444",
        "2223003122003222",
        "378282246310005",
        "3782 822463 10005",
        "30569309025904",
        "3530111333300000",
        "6011111111111117",
        "6205500000000000004",
    ] {
        for around in
            ["Paid with CARD.", "CARD", "(CARD)", "卡号CARD。", "a,CARD,12/28,123", "\"CARD\""]
        {
            let text = around.replace("CARD", card);
            assert_eq!(redactor.redact_text(&text), around.replace("CARD", REDACTED), "{text}");
        }
    }
    let two = "4111111111111111 and 5555 5555 5555 4444 123";
    assert_eq!(redactor.redact_text(two), "[redacted] and [redacted] 123");
}

#[test]
fn social_security_numbers_are_known_by_form_or_name() {
    let redactor = redactor();
    for (text, expected) in [
        ("It is 123-45-6789.", "It is [redacted]."),
        ("It is 123\u{2013}45\u{2013}6789.", "It is [redacted]."),
        ("SSN: 123456789", "SSN: [redacted]"),
        ("ssn=123 45 6789;", "ssn=[redacted];"),
        ("Her Social Security number is 123456789", "Her Social Security number is [redacted]"),
    ] {
        assert_eq!(redactor.redact_text(text), expected);
    }
}

#[test]
fn ibans_are_known_by_country_and_check_digits() {
    let redactor = redactor();
    for iban in [
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "de89370400440532013000",
        "GB82WEST12345698765432",
        "GB82 WEST 1234 5698 7654 32",
        "FR1420041010050500013M02606",
        "NO9386011117947",
        "CH93 0076 2011 6238 5295 7",
        "MT84MALT011000012345MTLCAST001S",
    ] {
        let text = format!("Sent to {iban}, as agreed.");
        assert_eq!(redactor.redact_text(&text), "Sent to [redacted], as agreed.", "{text}");
    }
}

#[test]
fn ordinary_numbers_stay() {
    let redactor = redactor();
    for text in [
        // Each with one wrong digit.
        "4111111111111112 and 4111 1111 1111 1121 and DE88370400440532013000",
        // A correct Luhn digit, but no card issuer; a barcode; the serial number of a phone.
        "1234567812345670 4006381333931 356938035643809",
        // Times in seconds to nanoseconds, and a time without separators.
        "1716560531 1716560531342 1716560531342000 1716560531342000000 20260524142211342",
        // Decimals, versions, addresses, dates, phones.
        "0.4111111111111111 of 1.4111111111111111; v4.11.1; 192.168.0.1; 2026-05-24; +1 555-123-4567",
        // Hashes, ids, UUIDs and similar values.
        "a4111111111111111 evt_4111111111111111 4111111111111111f 0x4111111111111111",
        "550e8400-e29b-41d4-a716-446655440000 4111-1111-1111-1111-1111 9-4111-1111-1111-1111",
        "44444444-4444-4444-8444-444444444444",
        // Longer than any card.
        "41111111111111114111111111111111",
        // Impossible social security numbers, and nine digits without a name.
        "000-12-3456 666-12-3456 912-12-3456 123-00-4567 123-45-0000 123456789 123 45 6789",
        "1-123-45-6789 and 123-45-6789-1 and part a-123-45-6789",
        "Lines 1200 1300 1400 1500 1600 of 2000",
    ] {
        assert_eq!(redactor.redact_text(text), text);
    }
}

#[test]
fn each_kind_of_number_can_be_left_in() {
    let all = "4111111111111111, 123-45-6789, DE89370400440532013000";
    let without = |change: fn(&mut RedactConfig)| {
        let mut config = RedactConfig::default();
        change(&mut config);
        Redactor::new(&config).expect("a configuration").redact_text(all).into_owned()
    };
    assert_eq!(without(|it| it.card_numbers = false), "4111111111111111, [redacted], [redacted]");
    assert_eq!(
        without(|it| it.social_security_numbers = false),
        "[redacted], 123-45-6789, [redacted]"
    );
    assert_eq!(without(|it| it.ibans = false), "[redacted], [redacted], DE89370400440532013000");
    assert_eq!(
        without(|it| it.exceptions = vec!["4111111111111111".to_owned()]),
        "4111111111111111, [redacted], [redacted]"
    );
}

#[test]
fn numbers_go_from_every_event_but_an_ask() {
    let event = |kind: &str| {
        let mut event = json!({
            "type": format!("aaep:agent.{kind}"),
            "action": "Pay 900 euros to DE89370400440532013000 with 4111 1111 1111 1111.",
            "consequence": "900 euros leave DE89370400440532013000. password=hunter2",
            "question": "Is 123-45-6789 yours?",
            "chunk": "Card 4111111111111111, ok",
            "extra_context": { "card": 4_111_111_111_111_111_u64, "ssn": "123456789" },
        });
        redactor().redact_event(event.as_object_mut().expect("an object"));
        event
    };
    let told = event("tool.invoked");
    assert_eq!(told["action"], "Pay 900 euros to [redacted] with [redacted].");
    assert_eq!(told["question"], "Is [redacted] yours?");
    assert_eq!(told["chunk"], "Card [redacted]      , ok", "as many characters as before");
    assert_eq!(told["extra_context"], json!({ "card": REDACTED, "ssn": REDACTED }));
    for kind in ["awaiting.confirmation", "awaiting.clarification"] {
        let asked = event(kind);
        assert_eq!(
            asked["action"],
            "Pay 900 euros to DE89370400440532013000 with 4111 1111 1111 1111."
        );
        assert_eq!(
            asked["consequence"],
            "900 euros leave DE89370400440532013000. password=[redacted]"
        );
        assert_eq!(asked["question"], "Is 123-45-6789 yours?");
        assert_eq!(asked["extra_context"]["card"], 4_111_111_111_111_111_u64);
    }
}

proptest! {
    #[test]
    fn a_card_is_found_wherever_it_stands(before in "\\PC{0,20}", after in "\\PC{0,20}") {
        let text = format!("{before} 4111111111111111 {after}");
        prop_assert!(!redactor().redact_text(&text).contains("4111111111111111"));
    }
}
