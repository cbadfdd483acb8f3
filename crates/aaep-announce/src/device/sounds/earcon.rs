//! The computed sounds: a few notes each. They differ in rhythm and in the direction of the pitch, so that people who
//! do not hear every pitch can tell them apart.

use std::f32::consts::TAU;

use crate::utterance::Earcon;

/// The sample rate; there is one channel.
pub const SAMPLES_PER_SECOND: u32 = 44_100;

/// The peak volume, where 1 is the maximum.
const LOUDNESS: f32 = 0.5;

/// How long a note takes to fade in and out, in seconds, so that it does not click.
const EDGE: f32 = 0.008;

/// A note: its first and last pitch in hertz, its length and the silence after it in seconds, and its roughness.
struct EarconNote {
    from: f32,
    to: f32,
    length: f32,
    rest: f32,
    /// The share of odd overtones.
    roughness: f32,
}

const fn note(from: f32, to: f32, length: f32, rest: f32, roughness: f32) -> EarconNote {
    EarconNote { from, to, length, rest, roughness }
}

/// Three quick steps upwards, like a question.
const NEEDS_YOU: [EarconNote; 3] = [
    note(659.3, 659.3, 0.09, 0.04, 0.1),
    note(880.0, 880.0, 0.09, 0.04, 0.1),
    note(1108.7, 1244.5, 0.16, 0.0, 0.1),
];

/// One long note that falls and comes to rest.
const DONE: [EarconNote; 1] = [note(784.0, 523.3, 0.38, 0.0, 0.0)];

/// Two short rough knocks on one low note.
const ERROR: [EarconNote; 2] =
    [note(220.0, 220.0, 0.11, 0.09, 0.5), note(220.0, 220.0, 0.11, 0.0, 0.5)];

/// The samples of a sound.
pub fn samples(earcon: Earcon) -> Vec<i16> {
    let notes: &[EarconNote] = match earcon {
        Earcon::NeedsYou => &NEEDS_YOU,
        Earcon::Done => &DONE,
        Earcon::Error => &ERROR,
    };
    let mut samples = Vec::new();
    for note in notes {
        play(note, &mut samples);
    }
    samples
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small"
)]
fn play(note: &EarconNote, samples: &mut Vec<i16>) {
    let per_second = SAMPLES_PER_SECOND as f32;
    let count = (note.length * per_second) as usize;
    let mut turn = 0.0_f32;
    for at in 0..count {
        let done = at as f32 / count as f32;
        let seconds = at as f32 / per_second;
        turn = (turn + (note.from + (note.to - note.from) * done) / per_second).fract();
        let wave = |overtone: f32| (turn * overtone * TAU).sin() / overtone;
        let rough = note.roughness * (wave(3.0) + wave(5.0));
        let loudest = 1.0 + note.roughness * (1.0 / 3.0 + 1.0 / 5.0);
        let edge = (seconds / EDGE).min((note.length - seconds) / EDGE).clamp(0.0, 1.0);
        // It fades like a struck instrument.
        let fading = 1.0 - 0.6 * done;
        let value = (wave(1.0) + rough) / loudest * edge * fading * LOUDNESS;
        samples.push((value * f32::from(i16::MAX)) as i16);
    }
    samples.extend(std::iter::repeat_n(0, (note.rest * per_second) as usize));
}

/// A sound as a WAV file.
pub fn wav(samples: &[i16]) -> Vec<u8> {
    const BYTES_PER_SAMPLE: u16 = 2;
    let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut file = Vec::with_capacity(44 + data.len());
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&length.saturating_add(36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16_u32.to_le_bytes());
    // Uncompressed samples, one channel.
    file.extend_from_slice(&1_u16.to_le_bytes());
    file.extend_from_slice(&1_u16.to_le_bytes());
    file.extend_from_slice(&SAMPLES_PER_SECOND.to_le_bytes());
    file.extend_from_slice(&(SAMPLES_PER_SECOND * u32::from(BYTES_PER_SAMPLE)).to_le_bytes());
    file.extend_from_slice(&BYTES_PER_SAMPLE.to_le_bytes());
    file.extend_from_slice(&(8 * BYTES_PER_SAMPLE).to_le_bytes());
    file.extend_from_slice(b"data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&data);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Earcon; 3] = [Earcon::NeedsYou, Earcon::Done, Earcon::Error];

    /// The frequency of a part of the sound in hertz, from how often the wave crosses zero upwards.
    fn pitch(samples: &[i16]) -> u32 {
        let ups = samples.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
        u32::try_from(ups).expect("few") * SAMPLES_PER_SECOND
            / u32::try_from(samples.len()).expect("few")
    }

    /// The sounding parts between silences of more than a hundredth of a second.
    fn notes(samples: &[i16]) -> Vec<&[i16]> {
        let silence = SAMPLES_PER_SECOND as usize / 100;
        let mut notes = Vec::new();
        let (mut begin, mut quiet) = (None, 0);
        for (at, sample) in samples.iter().enumerate() {
            quiet = if *sample == 0 { quiet + 1 } else { 0 };
            match begin {
                None if *sample != 0 => begin = Some(at),
                Some(from) if quiet > silence => {
                    notes.push(&samples[from..=at - quiet]);
                    begin = None;
                }
                _ => {}
            }
        }
        notes.extend(begin.map(|from| &samples[from..]));
        notes
    }

    #[test]
    fn every_sound_is_short_never_clips_and_begins_and_ends_softly() {
        for earcon in ALL {
            let samples = samples(earcon);
            let second = SAMPLES_PER_SECOND as usize;
            assert!(
                (second / 5..second / 2).contains(&samples.len()),
                "{earcon:?}: {}",
                samples.len()
            );
            let loudest =
                samples.iter().map(|sample| sample.unsigned_abs()).max().expect("samples");
            assert!((8_000..20_000).contains(&loudest), "{earcon:?}: {loudest}");
            let edge = |sample: Option<&i16>| sample.expect("a sample").unsigned_abs() < 500;
            assert!(edge(samples.first()) && edge(samples.last()), "{earcon:?}");
            let jump =
                samples.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().expect("samples");
            assert!(jump < 6_000, "{earcon:?} clicks: {jump}");
        }
    }

    #[test]
    fn the_sounds_differ_in_rhythm_and_contour_and_not_only_in_pitch() {
        let [needs_you, done, error] = ALL.map(samples);
        let count = |samples: &[i16]| notes(samples).len();
        assert_eq!([count(&needs_you), count(&done), count(&error)], [3, 1, 2]);
        let pitches: Vec<u32> = notes(&needs_you).into_iter().map(pitch).collect();
        assert!(pitches.is_sorted_by(|one, next| one + 100 < *next), "upwards: {pitches:?}");
        let (first, second) = done.split_at(done.len() / 2);
        assert!(pitch(first) > pitch(second) + 50, "downwards");
        let pitches: Vec<u32> = notes(&error).into_iter().map(pitch).collect();
        assert!(pitches.iter().all(|pitch| pitch.abs_diff(pitches[0]) < 15), "level: {pitches:?}");
    }

    #[test]
    fn the_file_says_what_is_in_it() {
        let samples = samples(Earcon::Done);
        let file = wav(&samples);
        assert_eq!(file.len(), 44 + 2 * samples.len());
        assert_eq!(
            (&file[..4], &file[8..16], &file[36..40]),
            (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..])
        );
        let number =
            |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
        assert_eq!(number(4) as usize, file.len() - 8);
        assert_eq!(number(24), SAMPLES_PER_SECOND);
        assert_eq!(number(40) as usize, 2 * samples.len());
        assert_eq!(file[44..46], samples[0].to_le_bytes());
    }
}
