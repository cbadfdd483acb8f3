//! Any bytes as a message of gRPC, and any code and reason as the end of a call: never a panic, and what is
//! understood survives being written again. The frames around messages are tonic's.
#![no_main]

use aaep_transport::grpc::{close_code, closed_status, proto::AaepMessage};
use libfuzzer_sys::fuzz_target;
use prost::Message as _;

fuzz_target!(|input: (u16, &[u8])| {
    let (code, bytes) = input;
    if let Ok(message) = AaepMessage::decode(bytes) {
        let again = AaepMessage::decode(message.encode_to_vec().as_slice());
        assert_eq!(again.as_ref(), Ok(&message));
    }
    let reason = String::from_utf8_lossy(bytes);
    let status = closed_status(code, &reason);
    assert_eq!(close_code(status.metadata()), Some(code));
});
