//! HTTP/1.1 chunks, for a body that is written without an HTTP library (RFC 9112 §7.1).
//!
//! It does not read chunks and does not support trailers.

use std::io::Write;

/// The end of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends `bytes` as one chunk. Empty `bytes` write nothing, because an empty chunk would end the body.
pub fn chunk(bytes: &[u8], into: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    into.reserve(bytes.len() + 2 * usize::BITS as usize / 8 + 4);
    write!(into, "{:x}\r\n", bytes.len()).expect("a vector takes all bytes");
    into.extend_from_slice(bytes);
    into.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_says_its_length_in_hexadecimal() {
        let mut bytes = Vec::new();
        chunk(&[b'x'; 26], &mut bytes);
        assert_eq!(bytes, [b"1a\r\n".as_slice(), &[b'x'; 26], b"\r\n"].concat());
    }

    #[test]
    fn no_bytes_do_not_end_the_body() {
        let mut bytes = Vec::new();
        chunk(b"", &mut bytes);
        assert!(bytes.is_empty());
    }
}
