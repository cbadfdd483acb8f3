//! Broken hubs, one for each invariant: what they do wrong must be caught by that invariant.
