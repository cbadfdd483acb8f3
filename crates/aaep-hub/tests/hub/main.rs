//! The hub as a whole, over real sockets and a real store, without HTTP.

mod agents;
mod asks;
mod backup;
mod bounds;
mod every_field;
mod legacy;
mod names;
mod older;
mod own_ids;
mod restart;
mod stdio;
mod streams;
mod support;
