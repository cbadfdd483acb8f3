//! The functions that C sees. They only convert; the other files decide.
//!
//! A panic never crosses into C: it becomes an error. Every unsafe block states what the caller promises, and the
//! header tells the caller the same.

#![expect(unsafe_code, reason = "pointers from C; see docs/decisions/unsafe-in-the-c-binding.md")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::Duration;

use crate::subscribers::{self, NextResult};

/// There is news, as a line of JSON.
pub const AAEP_NEWS: c_int = 1;
/// Nothing new arrived in time.
pub const AAEP_NOTHING: c_int = 0;
/// The subscription has ended, and nothing more arrives.
pub const AAEP_OVER: c_int = -1;
/// The call failed; `aaep_last_error` says why.
pub const AAEP_ERROR: c_int = -2;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Subscribes to the producer at an address. Returns the number of a subscriber, or 0.
///
/// # Safety
/// `url` and `options` are null or texts that end with a zero byte and stay as they are during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aaep_connect(url: *const c_char, options: *const c_char) -> u64 {
    guarded(0, || {
        // SAFETY: the caller promises that it is null or a text that ends with a zero byte.
        let url = unsafe { text(url) }?.ok_or("The address is missing.")?;
        // SAFETY: as for the address.
        let options = unsafe { text(options) }?;
        subscribers::connect(url, options)
    })
}

/// Waits for news, at most this many milliseconds; a negative number waits without limit. Stores a line of JSON
/// at `line`, to be freed with `aaep_free`.
///
/// # Safety
/// `line` is null or points to a pointer that nobody else uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aaep_next(
    subscriber: u64,
    timeout_ms: c_int,
    line: *mut *mut c_char,
) -> c_int {
    guarded(AAEP_ERROR, || {
        if line.is_null() {
            return Err("The pointer for the line is null.".to_owned());
        }
        // SAFETY: it is not null, and the caller promises that it points to a pointer.
        unsafe { line.write(ptr::null_mut()) };
        let time = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let news = match subscribers::next(subscriber, time)? {
            NextResult::News(news) => news,
            NextResult::Nothing => return Ok(AAEP_NOTHING),
            NextResult::Over => return Ok(AAEP_OVER),
        };
        let news = CString::new(news).map_err(|_| "The news cannot be written for C.")?;
        // SAFETY: as above, and nothing has used the pointer since.
        unsafe { line.write(news.into_raw()) };
        Ok(AAEP_NEWS)
    })
}

/// Sends the person's answer, or a request about the time to answer. Returns 1 if it is on its way, otherwise
/// [`AAEP_ERROR`].
///
/// # Safety
/// `reply` is null or a text that ends with a zero byte and stays as it is during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aaep_reply(subscriber: u64, reply: *const c_char) -> c_int {
    guarded(AAEP_ERROR, || {
        // SAFETY: the caller promises that it is null or a text that ends with a zero byte.
        let reply = unsafe { text(reply) }?.ok_or("The reply is missing.")?;
        subscribers::reply(subscriber, reply).map(|()| 1)
    })
}

/// Closes a subscriber. Does nothing if it is already closed.
#[unsafe(no_mangle)]
pub extern "C" fn aaep_close(subscriber: u64) {
    guarded((), || {
        subscribers::close(subscriber);
        Ok(())
    });
}

/// Why the last call of this thread failed; empty if it did not. The text stays valid until the next call of this
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn aaep_last_error() -> *const c_char {
    LAST_ERROR.with(|error| error.try_borrow().map_or(ptr::null(), |error| error.as_ptr()))
}

/// Frees a line. Null is allowed.
///
/// # Safety
/// `line` is null, or came from `aaep_next` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aaep_free(line: *mut c_char) {
    if !line.is_null() {
        // SAFETY: the caller promises that it came from `aaep_next`, where it was made by `CString::into_raw`,
        // and that it is freed once.
        drop(unsafe { CString::from_raw(line) });
    }
}

/// The version of this library.
#[unsafe(no_mangle)]
pub extern "C" fn aaep_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// The text at a pointer; `None` if it is null.
///
/// # Safety
/// The pointer is null, or points to a text that ends with a zero byte and does not change during `'t`.
unsafe fn text<'t>(pointer: *const c_char) -> Result<Option<&'t str>, String> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| "The text is not UTF-8.".to_owned())
}

/// Runs `work`, stores its error for [`aaep_last_error`], and catches every panic.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> Result<T, String>) -> T {
    let result = catch_unwind(AssertUnwindSafe(work));
    let result = result.unwrap_or_else(|_| Err("The library has a fault. Tell its makers.".into()));
    let (value, error) = match result {
        Ok(value) => (value, String::new()),
        Err(error) => (otherwise, error),
    };
    let error = CString::new(error.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = error;
        }
    });
    value
}
