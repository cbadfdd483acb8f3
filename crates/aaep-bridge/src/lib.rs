//! Agents that know nothing of AAEP: how risky what they do is. Pure; never decides for a person.
#![doc = include_str!("../README.md")]

pub mod risk;
