//! A subscriber in Rust: prints what agents say, and lets the person at the keyboard answer.
#![expect(clippy::print_stdout, reason = "it speaks to people")]

use std::{env, error::Error, io};

use aaep_subscriber::blocking::{connect, wait};
use aaep_subscriber::{News, Wishes};

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7117".to_owned());
    let subscriber = connect(&url, Wishes::new("rust-subscriber"))?;
    println!("Listening.");
    for news in subscriber {
        match news {
            News::Event(event) => println!("{}", aaep::printable(&event.words())),
            News::Ask(ask) => {
                println!("{} Type accept or reject:", aaep::printable(&ask.words()));
                let mut typed = String::new();
                if io::stdin().read_line(&mut typed)? == 0 {
                    break; // Without a keyboard there is nobody to ask.
                }
                let said = match typed.trim() {
                    "accept" => wait(ask.accept()),
                    "reject" => wait(ask.reject()),
                    _ => continue, // Whoever types anything else has not answered.
                };
                said.unwrap_or_else(|why| println!("{why}"));
            }
            News::AskEnded(ask) => println!("The question is {:?}.", ask.state()),
            News::Ended(why) => println!("{why}"),
            _ => {}
        }
    }
    Ok(())
}
