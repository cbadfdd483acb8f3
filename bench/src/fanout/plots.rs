//! The results as pictures: one for each wire and each measure.

use std::fs;
use std::path::Path;

use super::BURST;
use super::crowd::SubscriberCrowd;
use super::rows::FanoutRow;
use super::wire::{FanoutWire, ServerKind};
use crate::plot::{LinePlot, PlotLine};
use crate::timing::float;

/// A number of a row, with its title and the name of its file.
struct PlottedMeasure {
    file: &'static str,
    title: String,
    upright: &'static str,
    number: fn(&FanoutRow) -> f64,
}

fn measures() -> [PlottedMeasure; 4] {
    [
        PlottedMeasure {
            file: "cpu",
            title: "Processor time of deliveries, one event at a time".to_owned(),
            upright: "Processor seconds per million deliveries",
            number: |row| row.rates[0].cpu_per_million,
        },
        PlottedMeasure {
            file: "rate",
            title: "Deliveries, one event at a time".to_owned(),
            upright: "Deliveries a second",
            number: |row| row.rates[0].deliveries_per_second,
        },
        PlottedMeasure {
            file: "bursts",
            title: format!("Deliveries, {BURST} events at a time"),
            upright: "Deliveries a second",
            number: |row| row.rates[1].deliveries_per_second,
        },
        PlottedMeasure {
            file: "p99",
            title: "How late events are at 20000 deliveries a second".to_owned(),
            upright: "p99 in milliseconds",
            number: |row| row.latencies.p99,
        },
    ]
}

/// Draws every plot that has a line with at least two points, and returns the names of the files.
pub(super) fn draw(rows: &[FanoutRow], folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let mut files = Vec::new();
    for wire in FanoutWire::ALL {
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

fn plot(rows: &[FanoutRow], wire: FanoutWire, measure: &PlottedMeasure) -> LinePlot {
    let line = |kind: ServerKind| {
        let rows = rows.iter().filter(|row| {
            row.kind == kind && row.cell.wire == wire && row.cell.crowd == SubscriberCrowd::One
        });
        let points = rows.map(|row| (float(row.cell.subscribers as u64), (measure.number)(row)));
        PlotLine { name: kind.name().to_owned(), points: points.collect() }
    };
    let lines = [ServerKind::Hub, ServerKind::Raw, ServerKind::Axum, ServerKind::Nchan].map(line);
    LinePlot {
        title: format!("{}, {}", measure.title, wire.name()),
        across: "Subscribers of one audience",
        upright: measure.upright,
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
    }
}
