//! A real hyper server whose long answers are taken over by a wire, and raw clients that check every byte.

mod kinds;
mod limits;
mod server;
mod taking;
