//! The functions as a careless program in C calls them: nothing, nonsense, twice, too late.

#![expect(unsafe_code, reason = "the functions are those of C")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{self, null};

use aaep_c::{
    AAEP_ERROR, aaep_close, aaep_connect, aaep_free, aaep_last_error, aaep_next, aaep_reply,
    aaep_version,
};

fn error() -> String {
    // SAFETY: the text is that of this thread and stays until its next call.
    unsafe { CStr::from_ptr(aaep_last_error()) }.to_str().expect("UTF-8").to_owned()
}

fn connect(url: &str, options: Option<&str>) -> u64 {
    let text = |text: &str| CString::new(text).expect("no zero byte");
    let (url, options) = (text(url), options.map(text));
    let options = options.as_ref().map_or(null(), |it| it.as_ptr());
    // SAFETY: both are null or texts that end with a zero byte.
    unsafe { aaep_connect(url.as_ptr(), options) }
}

fn reply(subscriber: u64, text: *const c_char) -> c_int {
    // SAFETY: the tests give null or a text that ends with a zero byte.
    unsafe { aaep_reply(subscriber, text) }
}

fn next(subscriber: u64, line: *mut *mut c_char) -> c_int {
    // SAFETY: the tests give null or a place for a pointer.
    unsafe { aaep_next(subscriber, 0, line) }
}

#[test]
fn nothing_where_something_belongs_is_an_error_in_words() {
    // SAFETY: null is allowed.
    assert_eq!(unsafe { aaep_connect(null(), null()) }, 0);
    assert_eq!(error(), "The address is missing.");
    assert_eq!(reply(1, null()), AAEP_ERROR);
    assert_eq!(error(), "The reply is missing.");
    assert_eq!(next(1, ptr::null_mut()), AAEP_ERROR);
    assert_eq!(error(), "The pointer for the line is null.");
    // SAFETY: null is allowed.
    unsafe { aaep_free(ptr::null_mut()) };
}

#[test]
fn a_subscriber_that_never_was_or_is_closed_does_no_harm() {
    for subscriber in [0, 1, 77, u64::MAX] {
        let mut line = ptr::dangling_mut();
        assert_eq!(next(subscriber, &raw mut line), AAEP_ERROR);
        assert!(line.is_null(), "nothing is left to be freed");
        assert!(error().contains("no such subscriber"), "{}", error());
        assert_eq!(reply(subscriber, c"{}".as_ptr()), AAEP_ERROR);
        aaep_close(subscriber);
        aaep_close(subscriber);
        assert_eq!(error(), "");
    }
}

#[test]
fn addresses_and_options_that_make_no_sense_are_refused_before_anyone_is_called() {
    for (url, options) in [
        ("", None),
        ("nowhere", None),
        ("ftp://127.0.0.1/", None),
        ("http://127.0.0.1:1", Some("{")),
        ("http://127.0.0.1:1", Some("{\"unknown\":1}")),
        ("http://127.0.0.1:1", None),
        ("unix:/nowhere/at.all", Some("{\"subscriber_id\":\"lamp\"}")),
    ] {
        assert_eq!(connect(url, options), 0, "{url}");
        assert!(error().ends_with('.'), "{url}: {}", error());
    }
    // SAFETY: it ends with a zero byte.
    assert_eq!(unsafe { aaep_connect(c"\xff\xfe".as_ptr(), null()) }, 0);
    assert_eq!(error(), "The text is not UTF-8.");
}

#[test]
fn each_thread_has_its_own_error() {
    assert_eq!(connect("nowhere", None), 0);
    let here = error();
    std::thread::spawn(|| assert_eq!(error(), "")).join().expect("another thread");
    assert_eq!(error(), here);
    assert!(!here.is_empty());
}

#[test]
fn the_version_is_that_of_the_package() {
    // SAFETY: the text is a constant.
    let version = unsafe { CStr::from_ptr(aaep_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_header_declares_what_there_is_with_the_same_numbers() {
    let header = include_str!("../aaep.h");
    let source = include_str!("../src/abi.rs");
    let names: Vec<&str> = source
        .lines()
        .filter_map(|line| line.split("extern \"C\" fn ").nth(1)?.split('(').next())
        .collect();
    assert_eq!(names.len(), 7, "{names:?}");
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
    for (name, value) in [("NEWS", "1"), ("NOTHING", "0"), ("OVER", "(-1)"), ("ERROR", "(-2)")] {
        assert!(header.contains(&format!("#define AAEP_{name} {value}")), "{name}");
    }
}
