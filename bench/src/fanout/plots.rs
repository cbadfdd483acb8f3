//! What was found, as pictures: one for each wire and each number.

use std::fs;
use std::path::Path;

use super::BURST;
use super::crowd::Crowd;
use super::rows::Row;
use super::wire::{Kind, Wire};
use crate::plot::{Line, Plot};
use crate::timing::float;

/// A number of a row, what it is, and the name of its file.
struct Measure {
    file: &'static str,
    title: String,
    upright: &'static str,
    number: fn(&Row) -> f64,
}

fn measures() -> [Measure; 4] {
    [
        Measure {
            file: "cpu",
            title: "Processor time of deliveries, one event at a time".to_owned(),
            upright: "Processor seconds per million deliveries",
            number: |row| row.rates[0].cpu_per_million,
        },
        Measure {
            file: "rate",
            title: "Deliveries, one event at a time".to_owned(),
            upright: "Deliveries a second",
            number: |row| row.rates[0].deliveries_per_second,
        },
        Measure {
            file: "bursts",
            title: format!("Deliveries, {BURST} events at a time"),
            upright: "Deliveries a second",
            number: |row| row.rates[1].deliveries_per_second,
        },
        Measure {
            file: "p99",
            title: "How late events are at 20000 deliveries a second".to_owned(),
            upright: "p99 in milliseconds",
            number: |row| row.latencies.p99,
        },
    ]
}

/// Draws everything that has at least two points on a line, and gives the names of the files.
pub(super) fn draw(rows: &[Row], folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let mut files = Vec::new();
    for wire in Wire::ALL {
        for measure in measures() {
            let plot = plot(rows, wire, &measure);
            if plot.lines.iter().any(|line| line.points.len() > 1) {
                let file = format!("{}-{}.svg", wire.word(), measure.file);
                fs::write(folder.join(&file), plot.to_svg()).map_err(failed)?;
                files.push(file);
            }
        }
    }
    Ok(files)
}

fn plot(rows: &[Row], wire: Wire, measure: &Measure) -> Plot {
    let line = |kind: Kind| {
        let rows = rows.iter().filter(|row| {
            row.kind == kind && row.cell.wire == wire && row.cell.crowd == Crowd::One
        });
        let points = rows.map(|row| (float(row.cell.subscribers as u64), (measure.number)(row)));
        Line { name: kind.name().to_owned(), points: points.collect() }
    };
    let lines = [Kind::Hub, Kind::Raw, Kind::Axum, Kind::Nchan].map(line);
    Plot {
        title: format!("{}, {}", measure.title, wire.name()),
        across: "Subscribers of one audience",
        upright: measure.upright,
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
    }
}
