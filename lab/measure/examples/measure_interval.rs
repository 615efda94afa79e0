//! Prints the mean and the median of a list of numbers with their confidence intervals. The numbers are read
//! from standard input, one per line; otherwise a built-in list is used.

use std::io::{IsTerminal, Read};

use hol_measure::{CONFIDENCE, ConfidenceInterval, Interval};

/// Response times of ten runs, in ms. In one run there was a timeout.
const RUNS: [f64; 10] = [20.3, 20.1, 19.9, 20.4, 20.2, 20.0, 20.3, 19.8, 20.2, 41.7];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_string(&mut text)?;
    }
    let given = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    let samples = if given.is_empty() { &RUNS[..] } else { &given };

    let symmetric = Interval::of(samples, CONFIDENCE).ok_or("no samples")?;
    println!("mean    {symmetric} (95 % CI by Student's t)");
    let mean = ConfidenceInterval::of_mean(samples, CONFIDENCE).ok_or("no samples")?;
    println!(
        "mean    {:.2} (95 % CI {:.2} to {:.2}; the bootstrap's if the samples are skewed)",
        mean.value, mean.low, mean.high
    );
    let median = ConfidenceInterval::of_median(samples, CONFIDENCE).ok_or("no samples")?;
    println!("median  {:.2} (95 % CI {:.2} to {:.2})", median.value, median.low, median.high);
    Ok(())
}
