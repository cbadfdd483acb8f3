//! The kit against producers in memory, in paused time: honest ones, broken ones, and hostile ones.

mod asks;
mod cuts;
mod floods;
mod legacy;
mod line;
mod producer;
