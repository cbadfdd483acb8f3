//! Every example of docs/agents.md is run as it stands there, by a person who accepts and by one who does
//! not. What it says it does, people hear.
